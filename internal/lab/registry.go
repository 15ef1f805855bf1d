package lab

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// registry has the data of all registries, registrars and IANA.
type registry struct {
	authority *authority
	tlds      []*tld
	domains   map[string]*registration
	whois     map[string]service // servers by host
	rdap      map[string]service

	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// The servers of IANA.
var (
	ianaRDAP  = service{host: "data.iana.org", addr: netip.MustParseAddr("192.0.46.9")}
	ianaWHOIS = service{host: "whois.iana.org", addr: netip.MustParseAddr("192.0.47.59")}
)

// buildRegistry collects the servers of all registries and registrars.
func (p *plan) buildRegistry() (*registry, error) {
	a, err := newAuthority()
	if err != nil {
		return nil, err
	}
	p.registerOthers()
	r := &registry{authority: a, tlds: p.tlds, domains: p.registrations, seen: map[string]bool{},
		whois: map[string]service{ianaWHOIS.host: ianaWHOIS}, rdap: map[string]service{ianaRDAP.host: ianaRDAP}}
	for _, t := range p.tlds {
		r.know(t.rdap, t.whois)
	}
	for _, d := range p.registrations {
		r.know(d.registrar.rdap, d.registrar.whois)
	}
	return r, nil
}

// know registers the servers of a registry or a registrar.
func (r *registry) know(rdap, whois service) {
	if rdap.host != "" {
		r.rdap[rdap.host] = rdap
	}
	if whois.host != "" {
		r.whois[whois.host] = whois
	}
}

// openRegistry opens the sockets of the registries, and returns the functions that serve them.
func (l *Lab) openRegistry(o Options) (run []func(context.Context) error, err error) {
	r := l.registry
	l.Roots = r.authority.pool()
	hosts := slices.Sorted(maps.Keys(r.rdap))
	cert, err := r.authority.issue(hosts)
	if err != nil {
		return nil, err
	}
	web, err := l.listen(o, slices.Collect(maps.Values(r.rdap)), "443")
	if err != nil {
		return nil, err
	}
	run = append(run, func(ctx context.Context) error { return r.serveRDAP(ctx, web, cert) })
	for _, host := range slices.Sorted(maps.Keys(r.whois)) {
		at, err := l.listen(o, []service{r.whois[host]}, "43")
		if err != nil {
			return run, err
		}
		run = append(run, func(ctx context.Context) error { return r.serveWHOIS(ctx, at, host) })
	}
	return run, nil
}

// listen opens one socket for several services and adds it to the table.
func (l *Lab) listen(o Options, services []service, port string) (net.Listener, error) {
	var at net.Listener = newPipes()
	if !o.Memory {
		real, err := net.Listen("tcp4", "127.53.254.1:0")
		if err != nil {
			return nil, err
		}
		at = real
	}
	for _, s := range services {
		public := net.JoinHostPort(s.addr.String(), port)
		if s.host != "" {
			l.table.hosts[s.host] = s.addr
		}
		if p, ok := at.(*pipes); ok {
			l.table.pipes[public] = p
		} else {
			l.table.local[public] = at.Addr().String()
		}
	}
	return at, nil
}

// serveRDAP uses TLS also on loopback, so that the client of a scan verifies certificates as it does on the internet.
func (r *registry) serveRDAP(ctx context.Context, at net.Listener, cert tls.Certificate) error {
	s := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	secure := tls.NewListener(at, &tls.Config{Certificates: []tls.Certificate{cert},
		NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12})
	if err := s.Serve(secure); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// whoisTime limits how long a client may take to send its query.
const whoisTime = 10 * time.Second

// serveWHOIS ends lines with CR and LF, as most registries do, because clients must be able to read both forms.
func (r *registry) serveWHOIS(ctx context.Context, at net.Listener, host string) error {
	return accept(ctx, at, func(c net.Conn) {
		defer c.Close()
		stop := context.AfterFunc(ctx, func() { c.Close() })
		defer stop()
		c.SetDeadline(time.Now().Add(whoisTime))
		if query, err := readLine(c); err == nil {
			_, _ = io.WriteString(c, strings.ReplaceAll(r.answerWHOIS(host, query), "\n", "\r\n"))
		}
	})
}

// readLine reads a WHOIS query (RFC 3912 §2).
func readLine(c io.Reader) (string, error) {
	const longest = 512
	line, err := bufio.NewReader(io.LimitReader(c, longest)).ReadString('\n')
	if err != nil && len(line) < longest {
		return "", err
	}
	return strings.TrimSpace(line), nil
}
