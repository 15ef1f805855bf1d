// Package daemon runs the server: it opens the store, wires every part to it, binds all listeners, and runs until it is
// stopped.
//
// Start with Open and Run in daemon.go. listeners.go builds the HTTP APIs of each listener; reload.go applies a changed
// configuration.
package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/transfer"
)

// storeFile is the name of the store's file in the data directory.
const storeFile = "nameplane.db"

// Options configures a server.
type Options struct {
	Config  config.Config
	Load    func() (config.Config, error) // reads the configuration again for Reload
	Log     *slog.Logger
	Level   *slog.LevelVar // level of Log
	Version string         // version of the program
	Memory  int64          // memory limit of the process, in bytes; 0 for none
}

// Daemon is a server with an open store and all its listeners bound.
type Daemon struct {
	cfg        config.Config
	load       func() (config.Config, error)
	log        *slog.Logger
	level      *slog.LevelVar
	version    string
	data       *os.Root // the data directory
	store      *boltstore.Store
	budget     *budget.Budget // memory budget
	turns      *httpapi.Turns // of all HTTP listeners
	publisher  *publish.Publisher
	access     *access.Access
	designate  *designate.API
	external   *externaldns.API // the webhook of external-dns
	following  *following
	rules      *mec.Service
	explaining *explaining        // nil when scans are disabled
	callbacks  *mecapi.Callbacks  // nil when notifications are not sent
	forwarder  *forward.Forwarder // nil when names outside the zones of this server are refused
	notifier   *transfer.Notifier
	refresher  *transfer.Refresher
	peers      *dnspeer.Server
	keys       *transfer.Keyring
	dns        *dnsserver.Server
	dnsCerts   []*certs.Set // certificates of the encrypted DNS listeners
	listeners

	stopping    chan struct{} // closed when the listeners are about to close
	stopCommits func()        // stops the publisher; everything else must have stopped before
	committed   chan struct{} // closed when the publisher has stopped
}

// Open opens the store and binds every listener. The caller must call Run, which also closes the server.
func Open(ctx context.Context, o Options) (_ *Daemon, err error) {
	d := &Daemon{cfg: o.Config, load: o.Load, log: o.Log, level: o.Level, version: o.Version, budget: budget.New(o.Memory),
		turns: httpapi.NewTurns(), stopping: make(chan struct{}), committed: make(chan struct{})}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	for _, open := range []func() error{
		d.openStore,
		func() error { return d.openAccess(ctx) },
		func() error { return d.openRules(ctx) },
		d.openExplain, d.openDNS, d.openHTTPS, d.openListeners,
	} {
		if err := open(); err != nil {
			return nil, err
		}
	}
	d.writeAddresses()
	return d, dropRoot(d.log, d.cfg.User, d.cfg.Data)
}

// openStore opens the store and the parts that must exist before the first commit, and then starts the publisher.
func (d *Daemon) openStore() (err error) {
	if err := os.MkdirAll(d.cfg.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if d.data, err = os.OpenRoot(d.cfg.Data); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := d.checkEmptied(); err != nil {
		return err
	}
	if d.store, err = boltstore.Open(d.storePath(), boltstore.Options{Log: d.log}); err != nil {
		return err
	}
	if err := store.Init(d.store); err != nil {
		return fmt.Errorf("store file %s: %w", d.storePath(), err)
	}
	d.following = newFollowing(d)
	d.publisher, err = publish.Open(d.store,
		publish.Options{Log: d.log, Quotas: d.cfg.Designate.Quotas.OfProject(), Full: d.budget.Full,
			JournalLimit: d.cfg.Journal.Changes, Committed: d.onCommitted,
			Derive: d.following.aliases.Derive})
	if err != nil {
		return d.unreadable(err)
	}
	if err := d.following.aliases.Open(d.publisher); err != nil {
		return d.unreadable(err)
	}
	if err := d.openTransfer(); err != nil {
		return err
	}
	d.store.DropCaches() // the load has just read all pages once; zones are served from memory from now on
	ctx, cancel := context.WithCancel(context.Background())
	d.stopCommits = cancel
	go func() {
		defer close(d.committed)
		_ = d.publisher.Run(ctx) // it returns when ctx ends
	}()
	return nil
}

func (d *Daemon) storePath() string { return filepath.Join(d.cfg.Data, storeFile) }

// checkEmptied returns an error for an empty store file beside the token of an earlier server. A copy onto a full disk
// leaves such a file, and a server that used it as a new store would silently serve nothing.
func (d *Daemon) checkEmptied() error {
	if db, err := os.Stat(d.storePath()); err != nil || db.Size() > 0 {
		return nil // opening the store reports other errors
	}
	if _, err := os.Stat(filepath.Join(d.cfg.Data, access.AdminFile)); err != nil {
		return nil
	}
	return &store.DamagedError{Path: d.storePath(),
		Err: errors.New("it is empty, but the " + access.AdminFile + " beside it is from a server that wrote to it")}
}

// unreadable turns an error of reading the store at the start into a DamagedError. The pages are intact, because
// otherwise the store would not have opened. So a row that cannot be read was damaged without damage to a page.
func (d *Daemon) unreadable(err error) error {
	if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.As(err, new(*store.DamagedError)) {
		return err
	}
	return &store.DamagedError{Path: d.storePath(), Err: err}
}

// openAccess opens the accounts and ensures an admin. A server with zones starts even when the disk refuses a new admin
// token: answering queries is more important than management.
func (d *Daemon) openAccess(ctx context.Context) (err error) {
	if d.access, err = access.Open(ctx, d.publisher, access.Options{Log: d.log}); err != nil {
		return d.unreadable(err)
	}
	err = d.access.EnsureAdmin(ctx, d.cfg.Data)
	if err != nil && d.Zones() > 0 && refusedByDisk(err) {
		d.log.Error("there is no administrator, and the disk refuses a new token", "error", err)
		return nil
	}
	return err
}

// refusedByDisk reports whether a write failed because the disk is full or read-only.
func refusedByDisk(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) ||
		errors.Is(err, syscall.EROFS)
}

// openDNS binds every DNS address, and opens the forwarder when upstreams are configured.
func (d *Daemon) openDNS() error {
	if len(d.cfg.Forward.Upstreams) > 0 {
		c, err := d.forwardConfig(d.cfg.Forward)
		if err != nil {
			return err
		}
		d.forwarder = forward.New(c)
	}
	c, err := d.dnsConfig()
	if err != nil {
		return err
	}
	d.dns, err = dnsserver.Listen(c)
	return err
}

// checks returns the checks of /readyz.
func (d *Daemon) checks() []httpapi.Check {
	return []httpapi.Check{
		{Name: "store", OK: d.checkStore},
		{Name: "dns", OK: func() error {
			if len(d.dns.Addrs()) == 0 {
				return errors.New("no DNS address is bound")
			}
			return nil
		}},
	}
}

// checkStore returns an error for a store that cannot be read. For a store that takes no changes or is damaged, the
// error is ErrDegraded.
func (d *Daemon) checkStore() error {
	if err := d.publisher.Check(); err != nil {
		return err
	}
	if err := cmp.Or(d.store.Damage(), d.store.Refusal()); err != nil {
		return fmt.Errorf("%w: %w", httpapi.ErrDegraded, err)
	}
	return nil
}

// Endpoints has the addresses on which the server listens. It is written to addresses.json in the data directory, for
// programs that start a server with port 0.
type Endpoints struct {
	DNS   []string `json:"dns"`
	TLS   []string `json:"tls,omitempty"`   // DNS over TLS
	HTTPS []string `json:"https,omitempty"` // DNS over HTTPS
	QUIC  []string `json:"quic,omitempty"`  // DNS over QUIC
	HTTP  string   `json:"http"`
	Apps  string   `json:"apps,omitempty"`
	MEP   string   `json:"mep,omitempty"`

	ExternalDNS string `json:"externaldns,omitempty"`
}

// Endpoints returns the addresses of the bound listeners.
func (d *Daemon) Endpoints() Endpoints {
	c := d.cfg
	a := Endpoints{HTTP: urlOf(d.http, c.HTTP.TLS),
		Apps:        urlOf(d.apps, c.ListenerTLS(c.Apps.Listen, c.Apps.ClientCA)),
		MEP:         urlOf(d.mep, c.ListenerTLS(c.MEP.Listen, c.MEP.ClientCA)),
		ExternalDNS: urlOf(d.webhook, c.ListenerTLS(c.Webhook.Listen, ""))}
	b := d.dns.Bound()
	a.DNS, a.TLS, a.QUIC = b.Listen, b.TLS, b.QUIC
	for _, s := range d.doh {
		a.HTTPS = append(a.HTTPS, urlOf(s, config.TLS{Cert: c.DNS.Cert}))
	}
	return a
}

// Zones returns the number of zones that are served.
func (d *Daemon) Zones() int { return d.publisher.Snapshot().Len() }

// urlOf returns the URL of a listener. The port is the bound one, which differs from the configuration for port 0.
func urlOf(s *httpapi.Server, t config.TLS) string {
	switch {
	case s == nil:
		return ""
	case t.Cert != "":
		return "https://" + s.Addr().String()
	}
	return "http://" + s.Addr().String()
}

// writeAddresses writes addresses.json. The server runs even when it cannot write the file.
func (d *Daemon) writeAddresses() {
	path := filepath.Join(d.cfg.Data, "addresses.json")
	b, err := json.Marshal(d.Endpoints())
	if err == nil {
		err = os.WriteFile(path+".new", append(b, '\n'), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // a full disk leaves an empty file
		d.log.Warn("cannot write the addresses", "error", err)
	}
}

// Run serves until ctx ends. Then the listeners close and finish the requests that they have accepted, and the last
// commits are made.
func (d *Daemon) Run(ctx context.Context) error {
	defer d.close()
	g, ctx := errgroup.WithContext(ctx)
	// Queries that are being forwarded when ctx ends still get an answer.
	forwarding, stopForwarding := context.WithCancel(context.WithoutCancel(ctx))
	g.Go(func() error {
		defer stopForwarding()
		return d.dns.Run(ctx)
	})
	context.AfterFunc(ctx, func() { close(d.stopping) })
	for _, s := range d.open() {
		g.Go(func() error { return s.Run(ctx) })
	}
	if d.forwarder != nil {
		g.Go(func() error { return d.forwarder.Run(forwarding) })
	}
	g.Go(func() error { return d.following.run(ctx, d.ownAddresses()) })
	for _, run := range []func(context.Context) error{d.designate.Run, d.access.Run, d.rules.Run, d.explaining.run,
		d.notifier.Run, d.refresher.Run} {
		g.Go(func() error { return d.keepServing(run(ctx)) })
	}
	return g.Wait()
}

// keepServing keeps a part that stopped because of a damaged store from stopping the server: DNS is served from memory.
func (d *Daemon) keepServing(err error) error {
	if errors.As(err, new(*store.DamagedError)) {
		d.log.Error("a part of the server has stopped; DNS is still served", "error", err)
		return nil
	}
	return err
}

// close closes everything that Open has opened. The publisher stops first, so that all commits are in the store before
// it closes.
func (d *Daemon) close() {
	if d.stopCommits != nil {
		d.stopCommits()
		<-d.committed
	}
	if d.dns != nil {
		d.dns.Close()
	}
	for _, s := range d.open() {
		_ = s.Close() // fails when Run has already closed the listener
	}
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.log.Error("close the store", "error", err)
		}
	}
	if d.data != nil {
		_ = d.data.Close()
	}
}
