package ovn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// DB is a client of a northbound database that reconnects.
type DB struct {
	o       Options
	changed chan struct{} // has capacity one
	local   local

	mu       sync.Mutex
	conn     *conn         // nil if not connected
	epoch    uint64        // number of connections so far
	progress chan struct{} // closed and replaced when conn or its confirmed state changes
}

// Options are the address of the database and the features to use.
type Options struct {
	Address      string      // unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT
	TLS          *tls.Config // for ssl
	Switch       string      // database of the local switch, in the form of Address; empty means not used
	ManageGroups bool
	Keep, Stock  bool // see Features; Stock also disables guards
	Log          *slog.Logger
}

// ErrNoSet is returned if an address set does not exist yet.
var ErrNoSet = errors.New("no such address set")

// errLost is returned if the connection ended before the switch confirmed. The write may have been performed.
var errLost = errors.New("the connection to the northbound database was lost")

// retry is the pause between attempts to connect. The database is usually a socket of the same machine.
const retry = 500 * time.Millisecond

// NewDB returns a DB that does nothing before Run is called.
func NewDB(o Options) *DB {
	return &DB{o: o, changed: make(chan struct{}, 1), progress: make(chan struct{}),
		local: local{reached: map[string]int64{}}}
}

// Run keeps the connection until ctx ends.
func (d *DB) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if d.o.Switch != "" {
		wg.Go(func() { d.follow(ctx) })
	}
	lastError := "" // logged once, not with each attempt
	for ctx.Err() == nil {
		c, err := dial(ctx, d.o, d.notify)
		if err != nil {
			if err.Error() != lastError {
				d.o.Log.Warn("no northbound database", "address", d.o.Address, "err", err)
			}
			lastError = err.Error()
		} else {
			lastError = ""
			d.o.Log.Info("connected to the northbound database", "address", d.o.Address, "tier", c.features.Tier)
			d.set(c)
			c.wait(ctx)
			d.set(nil)
			d.o.Log.Info("left the northbound database", "address", d.o.Address)
		}
		pause(ctx)
	}
	return nil
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retry):
	}
}

// Changed returns a channel that receives when rows may differ from the last Read, including through our own writes.
func (d *DB) Changed() <-chan struct{} { return d.changed }

// notify is called for each change. rows reports whether rows changed, as opposed to the confirmed state.
func (d *DB) notify(rows bool) {
	if rows {
		select {
		case d.changed <- struct{}{}:
		default:
		}
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.progress)
	d.progress = make(chan struct{})
}

func (d *DB) set(c *conn) {
	d.mu.Lock()
	d.conn = c
	d.epoch++
	d.mu.Unlock()
	d.notify(false)
	d.notify(true)
}

func (d *DB) current() (*conn, uint64, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn, d.epoch, d.progress
}

// connected blocks until there is a connection.
func (d *DB) connected(ctx context.Context) (*conn, uint64, error) {
	for {
		c, epoch, progress := d.current()
		if c != nil {
			return c, epoch, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("no connection to the northbound database %s: %w", d.o.Address, ctx.Err())
		case <-progress:
		}
	}
}

// Read returns the existing rows, and the switch ports of the pods of each namespace.
func (d *DB) Read(ctx context.Context) (Rows, map[string][]string, Features, error) {
	c, _, err := d.connected(ctx)
	if err != nil {
		return Rows{}, nil, Features{}, err
	}
	rows, err := c.rows(ctx)
	if err != nil {
		return Rows{}, nil, Features{}, err
	}
	ports, err := c.ports(ctx)
	return rows, ports, c.features, err
}

// Mark identifies the state of the database after a write. The zero Mark is before all writes.
type Mark struct {
	Epoch uint64 // number of the connection; Cfg of another connection may belong to another database
	Cfg   int64
}

// Apply performs a transaction. The returned Mark is for Confirm.
func (d *DB) Apply(ctx context.Context, tx Tx) (Mark, error) {
	c, epoch, err := d.connected(ctx)
	if err != nil {
		return Mark{}, err
	}
	n, _, err := c.commit(ctx, operations(tx.Ops))
	switch {
	case err == nil:
		return Mark{epoch, n}, nil
	case tx.Namespace == "":
		return Mark{}, fmt.Errorf("address sets: %w", err)
	}
	return Mark{}, fmt.Errorf("firewall of %s: %w", tx.Namespace, err)
}

// Extend adds addresses to sets, by their names, in one transaction. It reads nothing and does not wait for other
// writes, so it costs one round trip. If a set is missing, the others are written nevertheless, and the error is
// ErrNoSet.
func (d *DB) Extend(ctx context.Context, sets map[string][]string) (Mark, error) {
	c, epoch, err := d.connected(ctx)
	if err != nil {
		return Mark{}, err
	}
	n, err := c.extend(ctx, sets)
	return Mark{epoch, n}, err
}

// Current reports whether m is a write that can still be confirmed.
func (d *DB) Current(m Mark) bool {
	_, epoch, _ := d.current()
	return m != Mark{} && m.Epoch == epoch
}

// Confirm blocks until every switch has applied the write of m. ovn-northd publishes the lowest number of all switches
// in hv_cfg, or its own number if there are none. If the local switch is the only one, it confirms earlier: see
// SetSoleNode.
func (d *DB) Confirm(ctx context.Context, m Mark) error {
	for m != (Mark{}) {
		c, epoch, progress := d.current()
		if c == nil || epoch != m.Epoch {
			return errLost
		}
		have := max(c.hv.Load(), d.local.confirmed(c.nb.Load()))
		if have >= m.Cfg {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not confirmed by the switch (%d of %d): %w", have, m.Cfg, ctx.Err())
		case <-progress:
		}
	}
	return nil
}
