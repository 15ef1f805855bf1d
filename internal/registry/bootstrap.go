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
	// keepBootstrap is the least time that IANA's list is kept: it changes some times a week, and all of the world asks.
	keepBootstrap = 24 * time.Hour
	// maxBootstrapAge bounds what a server may ask for.
	maxBootstrapAge = 7 * 24 * time.Hour
	// againBootstrap is when a list that could not be had is asked for again.
	againBootstrap = time.Minute
)

// servers are the RDAP servers of suffixes, without final dots.
type servers map[string][]string

// rdapSeeds are RDAP servers that are there but not on IANA's list, as several programs that ask them agree. A "not found" of
// theirs is believed only if WHOIS says so too: some such servers say it of every name.
var rdapSeeds = servers{
	"ac": {"https://rdap.identitydigital.services/rdap/"},
	"ch": {"https://rdap.nic.ch/"},
	"de": {"https://rdap.denic.de/"},
	"io": {"https://rdap.identitydigital.services/rdap/"},
	"li": {"https://rdap.nic.ch/"},
	"me": {"https://rdap.identitydigital.services/rdap/"},
	"sh": {"https://rdap.identitydigital.services/rdap/"},
}

// bootstrap is IANA's list of RDAP servers (RFC 9224), kept.
type bootstrap struct {
	busy chan struct{} // holds one while someone fetches

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

// rdapServers are the base URLs of the registry's servers; seeded is whether they are not from the list.
func (l *lookup) rdapServers(ctx context.Context) (bases []string, seeded bool, err error) {
	table, err := l.rdapTable(ctx)
	for n := l.domain; !n.IsZero() && !n.IsRoot(); n = n.Parent() { // the longest match counts (RFC 9224 §4)
		if bases := table[strings.TrimSuffix(n.String(), ".")]; len(bases) > 0 {
			return bases, false, nil
		}
	}
	labels := strings.Split(l.ascii(), ".")
	if bases := rdapSeeds[labels[len(labels)-1]]; len(bases) > 0 {
		return bases, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("the list of servers could not be read: %w", err)
	}
	return nil, false, errors.New("the registry has no server")
}

// rdapTable is the list: the one that is kept, if it is fresh, or else a new one, or else the old one.
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
	table, fresh := b.get() // someone else may have fetched it meanwhile
	if fresh {
		return table, nil
	}
	got, until, err := l.fetchBootstrap(ctx)
	if err != nil {
		b.set(table, time.Now().Add(againBootstrap))
		l.problem("The list of RDAP servers could not be fetched: %v.", err)
		return table, err
	}
	b.set(got, until)
	return got, nil
}

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

// lifetime is how long a reply says it is good for.
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

// parseBootstrap reads {"services": [[["com", "net"], ["https://rdap.example/"]], …]}.
func parseBootstrap(body []byte) (servers, error) {
	top, err := parseJSON(body)
	if err != nil {
		return nil, err
	}
	table := servers{}
	services, _ := top.get("services").v.([]any) // more than maxList
	for _, v := range services {
		bases := basesOf((node{v}).at(1), "https://")
		if len(bases) == 0 { // else nobody who can break the one way may choose the other
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
