package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	looks "github.com/nameplane/nameplane/internal/httpapi/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
)

// explaining is what looks at names for those who ask by REST.
type explaining struct {
	scans     *scans.Service
	resolvers *resolvers.List
}

// openExplain prepares looks at names; nothing is asked before somebody asks for it.
func (d *daemon) openExplain() error {
	c := d.cfg.Explain
	if !c.Enabled {
		return nil
	}
	base, list, err := d.gatherer()
	if err != nil {
		return err
	}
	// One for all scans: to a server that several look at they are one client.
	base.Options.Pace = &resolve.Pace{Rate: base.Options.Rate}
	service, err := scans.Open(d.publisher, lookWith(base), scans.Options{Parallel: c.Parallel, PerClient: c.PerClient, PerTarget: c.PerTarget,
		Keep: c.Keep, KeepAll: c.KeepAll, Public: c.Public, Parse: parseTarget, Domain: domainOf})
	if err != nil {
		return err
	}
	d.explaining = &explaining{scans: service, resolvers: list}
	return nil
}

// gatherer asks the public DNS, or the lab, and the resolvers of list.
func (d *daemon) gatherer() (g gather.Gatherer, list *resolvers.List, err error) {
	c := d.cfg.Explain
	if list, err = readResolvers(c.Resolvers); err != nil {
		return g, nil, fmt.Errorf("explain.resolvers: %w", err)
	}
	if c.Lab != "" {
		s := sight{lab: c.Lab, noRegistry: !c.Registry}
		if err := s.inLab(&g); err != nil {
			return g, nil, fmt.Errorf("explain.lab: %w", err)
		}
		return g, &resolvers.List{Name: "lab", Resolvers: g.Resolvers}, nil
	}
	g = inPublic(c, (&net.Dialer{}).DialContext, func(ctx context.Context, network string) (net.PacketConn, error) {
		return new(net.ListenConfig).ListenPacket(ctx, network, ":0")
	})
	g.Resolvers = list.Resolvers
	if c.Registry {
		g.Registry = &registry.Client{Log: d.log}
	}
	return g, list, nil
}

// inPublic asks the public DNS by these sockets. Only the question to the unused address, which is not public, leads elsewhere.
func inPublic(c config.Explain, dial gather.Dial, listen gather.Listen) gather.Gatherer {
	stray := gather.Only(dial, netip.AddrPortFrom(unused, 53))
	if !c.AllowPrivate {
		dial, listen = gather.PublicOnly(dial), gather.PublicOnlyListen(listen)
	}
	return gather.Gatherer{Exchanger: &resolve.Client{Dial: dial, AsIs: true}, Prober: &resolve.Prober{Dial: dial, Listen: listen},
		Fetch: gather.OverHTTP(dial), Route: gather.HasRoute, Stray: &resolve.Client{Dial: stray, AsIs: true}, Options: gather.Options{Unused: unused}}
}

// lookWith looks by a copy of a gatherer: each look has options of its own.
func lookWith(base gather.Gatherer) scans.Looker {
	return func(ctx context.Context, name dnsname.Name, r scans.Request, past []explain.Past, progress func(scans.Progress)) (*explain.Facts, error) {
		g := base
		g.Options.Past, g.Options.Change = past, r.Change
		g.Progress = func(e gather.Event) {
			progress(scans.Progress{Step: stageWords[e.Stage], Queries: e.Queries, Facts: e.Facts})
		}
		for _, text := range r.Expect {
			set, err := explain.ParseExpect(text)
			if err != nil {
				return nil, fmt.Errorf("expect %q: %w", text, err)
			}
			g.Options.Expect = append(g.Options.Expect, set)
		}
		l := look{kind: r.Kind}
		return l.ask(ctx, &g, r.Target, r.Types)
	}
}

func parseTarget(input string) (dnsname.Name, error) {
	name, _, err := gather.ParseInput(input)
	return name, err
}

func domainOf(n dnsname.Name) dnsname.Name {
	if d := registry.SuffixOf(n).Domain; !d.IsZero() {
		return d
	}
	return n
}

// register adds the door.
func (e *explaining) register(d *daemon, mux *http.ServeMux) {
	if e == nil {
		return
	}
	looks.API{Scans: e.scans, Resolvers: e.resolvers, PublicURL: d.cfg.HTTP.PublicURL, Log: d.log, Done: d.stopping}.Register(mux)
}

// run looks until ctx ends.
func (e *explaining) run(ctx context.Context) error {
	if e == nil {
		return nil
	}
	return e.scans.Run(ctx)
}
