// Package lab is an internet of its own on the loopback addresses of one machine: a root, top-level domains, domains that work
// and domains that do not, registries, and caching resolvers, all at the addresses under which they are known.
//
// Its servers are those of package simnet, and what they know is in the text files of the folder world. A Table tells where
// each famous address is in truth; Dial goes there, and nowhere else: to an address that is not in the table there is no way.
// In memory, for tests on fake time, the same needs no sockets at all.
package lab

import (
	"context"
	"crypto/x509"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"sync"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

//go:embed world/*.txt
var world embed.FS

// Options are how a lab is started.
type Options struct {
	Dir    string // for lab.json, by which others find the lab; default: none
	Port   uint16 // of all DNS servers; default: any that is free
	Memory bool   // open no sockets
	World  fs.FS  // with text files in a folder world, to read instead of those that are built in
}

// Lab is a lab that was started, or how to reach one that another process has.
type Lab struct {
	Hints     []iterate.Host // its root servers
	Anchor    string         // the DS record of its root
	Roots     *x509.CertPool // the authority of its certificates
	Resolvers []Resolver
	Domains   []Domain
	Net       *simnet.Net // its servers; nil where another process has them

	dir      string
	table    table
	registry *registry // nil where another process has it
	ended    chan struct{}
	err      error // why, once ended is closed
}

// Resolver is a caching resolver of the lab.
type Resolver struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs"`
	TLS   string       `json:"tls,omitempty"` // the name in its certificate; empty: it does not speak TLS
}

// Domain is a domain of the lab that is worth a look.
type Domain struct {
	Name  string   `json:"name"`
	Wrong string   `json:"wrong"`           // empty: nothing is
	Try   string   `json:"try"`             // a command line
	Finds []string `json:"finds,omitempty"` // ids of checks that must fail
}

// Start starts a lab. It ends with ctx; Wait tells when it has.
func Start(ctx context.Context, o Options) (*Lab, error) {
	var files fs.FS = world
	if o.World != nil {
		files = o.World
	}
	w, err := readWorld(files)
	if err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	l, err := w.build()
	if err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	l.dir, l.ended = o.Dir, make(chan struct{})
	if err := l.open(ctx, o); err != nil {
		return nil, fmt.Errorf("start the lab: %w", err)
	}
	return l, nil
}

// open opens the sockets, says where they are, and serves.
func (l *Lab) open(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	var services []func(context.Context) error
	var err error
	if o.Memory {
		l.table.memory = l.Net
	} else {
		sockets, err := l.Net.Listen(o.Port)
		if err != nil {
			cancel()
			return err
		}
		for famous, place := range sockets.Addrs() {
			l.table.places[famous.String()] = place.String()
		}
		services = append(services, sockets.Run)
	}
	for _, part := range []func(Options) ([]func(context.Context) error, error){l.openRegistry, l.openTLS} {
		var more []func(context.Context) error
		if err == nil {
			more, err = part(o)
			services = append(services, more...)
		}
	}
	if err == nil && o.Dir != "" {
		var control func(context.Context) error
		if control, err = l.publish(ctx); control != nil {
			services = append(services, control)
		}
	}
	run := func() {
		l.err = runAll(ctx, cancel, services)
		l.unpublish()
		close(l.ended)
	}
	if err != nil {
		cancel()
		run() // closes what is open
		return err
	}
	go run()
	return nil
}

// runAll runs services until ctx ends or one fails.
func runAll(ctx context.Context, cancel context.CancelFunc, services []func(context.Context) error) error {
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(services))
	for i, run := range services {
		all.Go(func() {
			if errs[i] = run(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Wait waits until the lab has ended and its files are removed.
func (l *Lab) Wait() error {
	<-l.ended
	return l.err
}

// Places tell where the addresses of the lab are in truth, each with its port; empty for one in memory.
func (l *Lab) Places() map[string]string { return maps.Clone(l.table.places) }
