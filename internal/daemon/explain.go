package daemon

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/httpapi/explainapi"
	"github.com/nameplane/nameplane/internal/resolve"
)

// explaining is the service behind /explain/v1.
type explaining struct {
	scans     *scans.Service
	resolvers *resolvers.List
}

// openExplain opens the scan service. It sends nothing before the first scan.
func (d *Daemon) openExplain() error {
	c := d.cfg.Explain
	if !c.Enabled {
		return nil
	}
	base, list, err := source.Open(d.source())
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	// All scans share one rate limit: a server that several scans query sees them as one client.
	base.Options.Pace = &resolve.Pace{Rate: base.Options.Rate}
	base.Hosted = func(zone dnsname.Name) (serial uint32, ok bool) {
		z := d.publisher.Snapshot().ZoneOf(zone)
		if z == nil {
			return 0, false
		}
		return z.Serial(), true
	}
	service, err := scans.Open(d.publisher, scanWith(base),
		scans.Options{Public: c.Public, Budget: d.budget, Parse: parseTarget, CheckService: func(r scans.Request) error {
			_, err := parseService(r)
			return err
		}})
	if err != nil {
		return err
	}
	d.explaining = &explaining{scans: service, resolvers: list}
	return nil
}

// source returns the configuration of what scans query. Without explain.allow_private, the owner of a scanned zone
// cannot make the server send queries into its own network.
func (d *Daemon) source() source.Config {
	c := d.cfg.Explain
	return source.Config{Lab: c.Lab, Resolvers: c.Resolvers, NoRegistry: !c.Registry, PublicOnly: !c.AllowPrivate,
		Special: d.cfg.Special(), Log: d.log}
}

// scanWith returns a function that scans with a copy of a gatherer, because each scan has its own options.
func scanWith(base gather.Gatherer) scans.Scanner {
	return func(ctx context.Context, _ dnsname.Name, r scans.Request, past []explain.Past,
		progress func(scans.Progress)) (*explain.Facts, error) {
		g := base
		g.Options.Past, g.Options.Change, g.Options.DKIM = past, r.Change, r.DKIM
		g.Progress = func(e gather.Event) {
			progress(scans.Progress{Step: source.StageText(e.Stage), Queries: e.Queries, Facts: e.Facts})
		}
		for _, text := range r.Expect {
			set, err := explain.ParseExpect(text)
			if err != nil {
				return nil, fmt.Errorf("expect %q: %w", text, err)
			}
			g.Options.Expect = append(g.Options.Expect, set)
		}
		if r.Kind == explain.KindService {
			in, err := parseService(r)
			if err != nil {
				return nil, err
			}
			return g.Service(ctx, in)
		}
		return source.Ask(ctx, &g, r.Kind, r.Target, r.Types)
	}
}

// parseService returns the input of a service.
func parseService(r scans.Request) (gather.ServiceInput, error) {
	var objects *service.Objects
	if r.Objects != "" {
		var err error
		if objects, err = service.Parse(strings.NewReader(r.Objects)); err != nil {
			return gather.ServiceInput{}, fmt.Errorf("objects: %w", err)
		}
	}
	in, err := gather.ParseService(r.Target, r.PointsTo, r.Proof, objects)
	if err != nil {
		return in, err
	}
	return in, in.ParseProofs(r.ProofHTTP, r.ProofNS)
}

func parseTarget(input string) (dnsname.Name, error) {
	name, _, err := gather.ParseInput(input)
	return name, err
}

// register adds the API to mux.
func (e *explaining) register(d *Daemon, mux *http.ServeMux) {
	if e == nil {
		return
	}
	explainapi.API{Scans: e.scans, Resolvers: e.resolvers, PublicURL: d.cfg.HTTP.PublicURL, Log: d.log,
		Done: d.stopping}.Register(mux)
}

// run runs scans until ctx ends.
func (e *explaining) run(ctx context.Context) error {
	if e == nil {
		return nil
	}
	return e.scans.Run(ctx)
}
