package main

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	looks "github.com/nameplane/nameplane/internal/httpapi/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
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
	list, err := readResolvers(c.Resolvers)
	if err != nil {
		return fmt.Errorf("explain.resolvers: %w", err)
	}
	base := d.gatherer(list)
	if c.Lab != "" {
		s := sight{lab: c.Lab, noRegistry: !c.Registry}
		if err := s.inLab(&base); err != nil {
			return fmt.Errorf("explain.lab: %w", err)
		}
		list = &resolvers.List{Name: "lab", Resolvers: base.Resolvers}
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

// gatherer asks the public DNS.
func (d *daemon) gatherer(list *resolvers.List) gather.Gatherer {
	c := d.cfg.Explain
	dial := gather.Dial((&net.Dialer{}).DialContext)
	listen := gather.Listen(func(ctx context.Context, network string) (net.PacketConn, error) {
		return new(net.ListenConfig).ListenPacket(ctx, network, ":0")
	})
	if !c.AllowPrivate {
		dial, listen = gather.PublicOnly(dial), gather.PublicOnlyListen(listen)
	}
	g := gather.Gatherer{Exchanger: &resolve.Client{Dial: dial, AsIs: true}, Prober: &resolve.Prober{Dial: dial, Listen: listen}, Resolvers: list.Resolvers,
		Fetch: gather.OverHTTP(dial), Route: gather.HasRoute}
	if c.Registry {
		g.Registry = &registry.Client{Log: d.log}
	}
	return g
}

// lookWith looks by a copy of a gatherer: each look has options of its own.
func lookWith(base gather.Gatherer) scans.Looker {
	return func(ctx context.Context, name explain.Name, r scans.Request, past []explain.Past, progress func(scans.Progress)) (*explain.Facts, error) {
		g := base
		g.Options.Past, g.Options.Change = past, r.Change
		g.Progress = func(e gather.Event) {
			progress(scans.Progress{Step: stageWords[e.Stage], Queries: e.Queries, Facts: e.Facts})
		}
		var types []rr.Type
		for _, t := range r.Types {
			types = append(types, t.Type)
		}
		for _, text := range r.Expect {
			set, err := parseExpect(text)
			if err != nil {
				return nil, fmt.Errorf("expect %q: %w", text, err)
			}
			g.Options.Expect = append(g.Options.Expect, set)
		}
		l := look{kind: r.Kind}
		return l.ask(ctx, &g, r.Target, types)
	}
}

func parseTarget(input string) (explain.Name, error) {
	name, _, err := gather.ParseInput(input)
	return explain.Name{Name: name}, err
}

func domainOf(n explain.Name) explain.Name {
	if d := registry.SuffixOf(n.Name).Domain; !d.IsZero() {
		return explain.Name{Name: d}
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
