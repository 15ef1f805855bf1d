package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// keepBootstrap is the minimum time that IANA's list is cached. It changes a few times per week, and clients all
	// over the internet fetch it.
	keepBootstrap = 24 * time.Hour
	// maxBootstrapAge limits the lifetime that a server may request.
	maxBootstrapAge = 7 * 24 * time.Hour
	// retryBootstrap is the pause after a failed fetch of the list.
	retryBootstrap = time.Minute
)

// servers maps suffixes without the final dot to the base URLs of their RDAP servers.
type servers map[string][]string

// rdapFallbacks are RDAP servers that exist but are not on IANA's list; several RDAP clients use them. Their "not
// found" counts only if WHOIS confirms it, because some such servers return it for every name.
var rdapFallbacks = servers{
	"ac": {"https://rdap.identitydigital.services/rdap/"},
	"ch": {"https://rdap.nic.ch/"},
	"de": {"https://rdap.denic.de/"},
	"io": {"https://rdap.identitydigital.services/rdap/"},
	"li": {"https://rdap.nic.ch/"},
	"me": {"https://rdap.identitydigital.services/rdap/"},
	"sh": {"https://rdap.identitydigital.services/rdap/"},
}

// bootstrap caches IANA's list of RDAP servers (RFC 9224).
type bootstrap struct {
	busy chan struct{} // holds a value while a goroutine fetches the list

	mu    sync.Mutex // guards the following
	table servers
	until time.Time
}

func (b *bootstrap) get() (servers, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.table, time.Now().Before(b.until)
}

func (b *bootstrap) set(table servers, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if table != nil {
		b.table = table
	}
	b.until = until
}

// rdapServers returns the base URLs of the registry's servers. fallback reports whether they are not from IANA's
// list.
func (l *lookup) rdapServers(ctx context.Context) (bases []string, fallback bool, err error) {
	table, err := l.rdapTable(ctx)
	for n := l.domain; !n.IsZero() && !n.IsRoot(); n = n.Parent() { // the longest match counts (RFC 9224 §4)
		if bases := table[strings.TrimSuffix(n.String(), ".")]; len(bases) > 0 {
			return bases, false, nil
		}
	}
	labels := strings.Split(l.ascii(), ".")
	if bases := rdapFallbacks[labels[len(labels)-1]]; len(bases) > 0 {
		return bases, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("the list of servers could not be read: %w", err)
	}
	return nil, false, errors.New("the registry has no server")
}

// rdapTable returns the cached list if it is fresh. Otherwise it fetches a new one, and returns the old one if that
// fails.
func (l *lookup) rdapTable(ctx context.Context) (servers, error) {
	b := &l.bootstrap
	if table, fresh := b.get(); fresh {
		return table, nil
	}
	select {
	case b.busy <- struct{}{}:
		defer func() { <-b.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	table, fresh := b.get() // another goroutine may have fetched it in the meantime
	if fresh {
		return table, nil
	}
	got, until, err := l.fetchBootstrap(ctx)
	if err != nil {
		b.set(table, time.Now().Add(retryBootstrap))
		l.problem("The list of RDAP servers could not be fetched: %v.", err)
		return table, err
	}
	b.set(got, until)
	return got, nil
}

// fetchBootstrap fetches the list. Its lifetime is that of the HTTP headers, but at least keepBootstrap and at most
// maxBootstrapAge.
func (l *lookup) fetchBootstrap(ctx context.Context) (servers, time.Time, error) {
	p, err := l.fetch(ctx, "bootstrap", cmp.Or(l.Client.Bootstrap, ianaBootstrap), maxBootstrap)
	if err != nil {
		return nil, time.Time{}, err
	}
	if p.status != http.StatusOK {
		return nil, time.Time{}, fmt.Errorf("status %d", p.status)
	}
	table, err := parseBootstrap(p.body)
	if err != nil {
		return nil, time.Time{}, err
	}
	return table, p.fetched.Add(min(max(lifetime(p.header), keepBootstrap), maxBootstrapAge)), nil
}

// lifetime returns how long a reply may be cached according to its headers.
func lifetime(h http.Header) time.Duration {
	for _, d := range strings.Split(h.Get("Cache-Control"), ",") {
		if v, ok := strings.CutPrefix(strings.TrimSpace(strings.ToLower(d)), "max-age="); ok {
			if s, err := strconv.ParseUint(v, 10, 31); err == nil {
				return time.Duration(s) * time.Second
			}
		}
	}
	if t, err := http.ParseTime(h.Get("Expires")); err == nil {
		return time.Until(t)
	}
	return 0
}

// parseBootstrap parses {"services": [[["com", "net"], ["https://rdap.example/"]], …]}.
func parseBootstrap(body []byte) (servers, error) {
	top, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	table := servers{}
	services, _ := top.get("services").v.([]any) // not list, which is limited to maxList
	for _, v := range services {
		bases := basesOf((node{v}).at(1), "https://")
		if len(bases) == 0 { // use http only without https: otherwise an attacker could force it by blocking https
			bases = basesOf((node{v}).at(1), "http://")
		}
		suffixes, _ := (node{v}).at(0).v.([]any)
		for _, s := range suffixes {
			table[strings.Trim((node{s}).word(), ".")] = bases
		}
	}
	if len(table) == 0 {
		return nil, errors.New("the list of RDAP servers is empty")
	}
	return table, nil
}

func basesOf(list node, scheme string) (bases []string) {
	for _, u := range list.list() {
		if base := u.text(); strings.HasPrefix(base, scheme) {
			bases = append(bases, strings.TrimSuffix(base, "/")+"/")
		}
	}
	return bases
}
