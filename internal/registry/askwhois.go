package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxWhois = 256 << 10
	maxHops  = 3 // number of servers that are queried about a domain: registry, registrar and a reseller
)

// whoisFallbacks are the servers of top-level domains for which IANA lists none.
var whoisFallbacks = map[string]string{
	"bz": "whois.identitydigital.services", "gd": "whois.nic.gd", "gg": "whois.gg", "je": "whois.je",
	"mu": "whois.nic.mu", "to": "whois.tonic.to", "tt": "whois.nic.tt", "vg": "whois.nic.vg",
}

// whoisQueries are the query formats of registries that need more than the domain name.
var whoisQueries = map[string]string{
	"com":  "domain %s", // otherwise the reply also has name servers with this prefix
	"net":  "domain %s",
	"de":   "-T dn,ace %s", // otherwise the reply only says whether the domain is registered
	"jp":   "%s/e",         // requests English
	"name": "domain = %s",
}

// whoisRoots caches the WHOIS server of each top-level domain.
type whoisRoots struct {
	mu    sync.Mutex // guards known
	known map[string]whoisRoot
}

type whoisRoot struct {
	server string
	until  time.Time
}

// keepRoot is how long a server is cached. Servers change every few years.
const keepRoot = 24 * time.Hour

// askWhois queries the registry and then the servers that it refers to. The error says why the state is still
// unknown.
func (l *lookup) askWhois(ctx context.Context) error {
	tld := l.ascii()[strings.LastIndexByte(l.ascii(), '.')+1:]
	server, err := l.whoisServer(ctx, tld)
	if err != nil {
		return err
	}
	query := fmt.Sprintf(cmp.Or(whoisQueries[tld], "%s"), l.ascii())
	seen := map[string]bool{}
	for range maxHops {
		seen[server] = true
		text, err := l.whois(ctx, server, query)
		reply := parseWhois(text, l.Domain)
		if err == nil {
			last := &l.Asked[len(l.Asked)-1]
			last.Result = string(reply.verdict) + ", " + last.Result
		}
		decided := l.State != Unknown
		switch {
		case err != nil && decided, decided && reply.verdict != isFound:
			l.problem("The registrar's WHOIS server returned no further data: %s: %v.", server,
				cmp.Or(err, errors.New(string(reply.verdict))))
			return nil
		case err != nil:
			return err
		case decided:
			l.fill(reply.Registration)
		case reply.verdict == isFound:
			l.decide(Registered, WHOIS, host(server))
			l.take(reply.Registration)
		case reply.verdict == isFree:
			l.decide(Free, WHOIS, host(server))
			l.Confidence = reply.Confidence
			return nil
		case reply.verdict != isReferral:
			return fmt.Errorf("%s: %s", server, reply.verdict)
		}
		server, query = reply.referral, l.ascii()
		if server == "" || seen[server] {
			break
		}
	}
	if l.State == Unknown {
		return errors.New("the servers only refer to each other")
	}
	return nil
}

// whoisServer returns the server of a top-level domain: the one that IANA lists, a fallback, or the conventional
// name.
func (l *lookup) whoisServer(ctx context.Context, tld string) (string, error) {
	l.roots.mu.Lock()
	known := l.roots.known[tld]
	l.roots.mu.Unlock()
	if time.Now().Before(known.until) {
		return known.server, nil
	}
	root := cmp.Or(l.WhoisRoot, ianaWhois)
	text, err := l.whois(ctx, root, tld)
	server := ""
	for _, f := range scanWhois(text) {
		if f.key == "refer" || f.key == "whois" {
			server = cmp.Or(server, whoisHost(f.value))
		}
	}
	switch fallback := whoisFallbacks[tld]; {
	case server != "":
		l.roots.keep(tld, server)
		return server, nil
	case fallback != "":
		return net.JoinHostPort(fallback, "43"), nil
	case err != nil:
		return "", err
	case !strings.Contains(strings.ToLower(text), tld):
		return "", fmt.Errorf("%s knows no server for .%s", root, tld)
	}
	return net.JoinHostPort("whois.nic."+tld, "43"), nil
}

func (r *whoisRoots) keep(tld, server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) > maxHosts {
		r.known = map[string]whoisRoot{}
	}
	r.known[tld] = whoisRoot{server, time.Now().Add(keepRoot)}
}

// whois queries one server (RFC 3912) and records the attempt. It uses a truncated reply, and adds a problem.
func (l *lookup) whois(ctx context.Context, server, query string) (string, error) {
	at := Attempt{Kind: "whois", Server: server, Query: query, At: time.Now().UTC()}
	err := l.limits.wait(ctx, server)
	var body []byte
	if err == nil {
		at.At = time.Now().UTC()
		body, err = l.talk(ctx, server, query)
	}
	if err != nil && len(body) > 0 {
		l.problem("The reply is truncated: %v.", askError(server, err))
		err = nil
	}
	if err == nil && len(body) == 0 {
		err = errors.New("the reply is empty")
	}
	if err != nil {
		err = askError(server, err)
		l.asked(ctx, at, err.Error())
		return "", err
	}
	l.asked(ctx, at, strconv.Itoa(len(body))+" bytes")
	return decodeText(body), nil
}

// talk sends a query and reads until the server closes the connection, the timeout ends, or maxWhois bytes have
// arrived.
func (c *Client) talk(ctx context.Context, server, query string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := c.dial(ctx, "tcp", server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.WriteString(conn, query+"\r\n"); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(conn, maxWhois))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return body, err
}

func (r *whoisReply) setReferral(v string) { r.referral = cmp.Or(r.referral, whoisHost(v)) }

// whoisHost returns the server in "whois.example.net", "whois.example.net:4343", "whois://whois.example.net" and
// "https://whois.example.net/", which some registrars use. It returns "" if there is no valid server.
func whoisHost(v string) string {
	v = strings.ToLower(strings.TrimSpace(v))
	if i := strings.Index(v, "://"); i >= 0 {
		v = v[i+len("://"):]
	}
	v, _, _ = strings.Cut(v, "/")
	name, port, ok := strings.Cut(v, ":")
	if !ok {
		port = "43"
	}
	name = strings.TrimSuffix(hostName(name), ".")
	if n, err := strconv.ParseUint(port, 10, 16); name == "" || err != nil || n == 0 {
		return ""
	}
	return net.JoinHostPort(name, port)
}

// host returns the host of a host:port pair.
func host(server string) string {
	h, _, err := net.SplitHostPort(server)
	if err != nil {
		return server
	}
	return h
}
