package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// maxBases is the number of RDAP servers of one registry that are queried. They have the same data.
const maxBases = 3

var (
	// errNoSuchDomain reports that the server says so explicitly.
	errNoSuchDomain = errors.New("no such domain")
	errOtherDomain  = errors.New("the reply is about another domain")
	errBusy         = errors.New("the server is busy")
	errUnsure       = errors.New("a server that is not on IANA's list does not know the domain")
)

// askRDAP queries the registry and then the registrar that it refers to. The error says why the state is still
// unknown.
func (l *lookup) askRDAP(ctx context.Context) error {
	bases, fallback, err := l.rdapServers(ctx)
	if err != nil {
		return err
	}
	for _, base := range bases[:min(len(bases), maxBases)] {
		var p page
		var reply rdapReply
		p, reply, err = l.rdap(ctx, base+"domain/"+l.ascii())
		switch {
		case err == nil:
			l.decide(Registered, RDAP, p.host)
			l.take(reply.Registration)
			l.askRegistrar(ctx, p, reply.related)
			return nil
		case errors.Is(err, errNoSuchDomain) && !fallback:
			l.decide(Free, RDAP, p.host)
			return nil
		case errors.Is(err, errNoSuchDomain):
			return errUnsure
		}
		l.problem("RDAP: %v.", err)
	}
	return err
}

// rdap queries one server. It retries once if the server is busy and the requested pause ends before the deadline.
func (l *lookup) rdap(ctx context.Context, address string) (p page, reply rdapReply, err error) {
	for range 2 {
		p, err = l.fetch(ctx, "rdap", address, maxRDAP)
		if err != nil {
			return p, reply, err
		}
		reply, err = l.read(p)
		if !errors.Is(err, errBusy) {
			break
		}
	}
	return p, reply, err
}

// read interprets a reply. Data counts more than the HTTP status: some servers send data with 401 or 429.
func (l *lookup) read(p page) (rdapReply, error) {
	reply, err := parseRDAP(p.body)
	switch {
	case err == nil && reply.code == 0 && reply.name != "" && reply.name != l.Domain:
		return reply, errOtherDomain
	case err == nil && reply.code == 0 && p.status != http.StatusNotFound:
		return reply, nil
	case p.busy() || reply.code == http.StatusTooManyRequests:
		return reply, fmt.Errorf("%s: %w", p.host, errBusy)
	case reply.code == http.StatusNotFound, p.status == http.StatusNotFound && (err == nil || len(p.body) == 0):
		return reply, errNoSuchDomain
	case p.status == http.StatusNotFound:
		// This may be the reply of the registry, or of a web server that does not support RDAP.
		return reply, fmt.Errorf("%s: status 404 without an RDAP reply", p.host)
	case p.status != http.StatusOK || reply.code != 0:
		return reply, fmt.Errorf("%s: status %d", p.host, max(p.status, int(reply.code)))
	}
	return reply, fmt.Errorf("%s: %w", p.host, err)
}

// askRegistrar queries the RDAP server of the registrar, which has more data, such as its own expiry date.
func (l *lookup) askRegistrar(ctx context.Context, registry page, related []string) {
	for _, address := range related {
		u, err := url.Parse(address)
		if err != nil || strings.EqualFold(u.Host, registry.host) {
			continue
		}
		_, reply, err := l.rdap(ctx, address)
		if err != nil {
			l.problem("The registrar's RDAP server returned no further data: %v.", err)
			return
		}
		l.fill(reply.Registration)
		return // stop after one hop: the links of a registrar lead to resellers or back
	}
}
