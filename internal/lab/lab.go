// Package lab runs a small internet on the loopback addresses of one machine: a root, top-level domains, healthy and
// broken domains, registries, and caching resolvers, all under their public addresses.
//
// Its servers are those of package simnet. Their data is in the text files of the folder internet. Dial and Listen
// translate public addresses to loopback addresses and reach nothing else. In memory, for tests with fake time, the
// lab needs no sockets.
//
// Start with Start in lab.go. The format of the text files is described in plan.go, and the registries are in
// registry.go.
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

//go:embed internet/*.txt
var builtin embed.FS

// Options are the settings of a lab.
type Options struct {
	Dir    string // folder for lab.json, in which other processes find the lab; default: none
	Port   uint16 // port of all DNS servers; default: a free port for each
	Memory bool   // open no sockets
	Files  fs.FS  // text files in a folder named internet; default: the built-in ones
}

// Lab is a lab of this process, or a connection to the lab of another process.
type Lab struct {
	Hints     []iterate.Host // its root servers
	Anchor    string         // the DS record of its root
	Roots     *x509.CertPool // the authority of its certificates
	Resolvers []Resolver
	Domains   []Domain
	Net       *simnet.Net // its servers; nil for the lab of another process

	dir      string
	table    table
	registry *registry // nil for the lab of another process
	ended    chan struct{}
	err      error // the result of the lab, set before ended is closed
}

// Resolver is a caching resolver of the lab.
type Resolver struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs"`
	TLS   string       `json:"tls,omitempty"` // the name in its certificate; empty: no TLS
}

// Domain is a domain of the lab to try the commands with.
type Domain struct {
	Name  string   `json:"name"`
	Wrong string   `json:"wrong"`           // what is wrong with it; empty if nothing is
	Try   string   `json:"try"`             // a command line
	Finds []string `json:"finds,omitempty"` // IDs of checks that must fail
}

// Start starts a lab. It ends when ctx ends; Wait blocks until then.
func Start(ctx context.Context, o Options) (*Lab, error) {
	var files fs.FS = builtin
	if o.Files != nil {
		files = o.Files
	}
	w, err := readPlan(files)
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

// open opens the sockets, publishes their addresses and serves them.
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
		for public, local := range sockets.Addrs() {
			l.table.local[public.String()] = local.String()
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
		run() // closes the open sockets
		return err
	}
	go run()
	return nil
}

// runAll runs services until ctx ends or one of them fails.
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

// Wait blocks until the lab has ended and its files are removed.
func (l *Lab) Wait() error {
	<-l.ended
	return l.err
}

// Addrs returns the loopback address of each public address of the lab, with ports. It is empty for a lab in memory.
func (l *Lab) Addrs() map[string]string { return maps.Clone(l.table.local) }
