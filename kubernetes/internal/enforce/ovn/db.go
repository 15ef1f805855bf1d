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

// DB is a northbound database that we stay connected to.
type DB struct {
	o       Options
	changed chan struct{} // of one element
	local   local

	mu    sync.Mutex
	conn  *conn         // nil while there is none
	epoch uint64        // counts connections
	moved chan struct{} // closed and replaced when conn or what it confirmed changed
}

// Options say where the database is and what we do there.
type Options struct {
	Address      string      // unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT
	TLS          *tls.Config // for ssl
	Switch       string      // database of the switch of this machine, as Address; empty: it is not asked
	ManageGroups bool
	Keep, Stock  bool // see Features; Stock also means no guards
	Log          *slog.Logger
}

// ErrNoSet says that an address set is not there yet.
var ErrNoSet = errors.New("no such address set")

// errLost says that the connection ended before the switch confirmed. What was written may be there.
var errLost = errors.New("the connection to the northbound database was lost")

// retry is the pause between attempts to connect: the database is a socket of the same machine, or nearly so.
const retry = 500 * time.Millisecond

// NewDB makes a DB, which does nothing before Run.
func NewDB(o Options) *DB {
	return &DB{o: o, changed: make(chan struct{}, 1), moved: make(chan struct{}), local: local{reached: map[string]int64{}}}
}

// Run stays connected until ctx ends.
func (d *DB) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	if d.o.Switch != "" {
		wg.Go(func() { d.follow(ctx) })
	}
	told := "" // the last error, which is not told again twice a second
	for ctx.Err() == nil {
		c, err := dial(ctx, d.o, d.notify)
		if err != nil {
			if err.Error() != told {
				d.o.Log.Warn("no northbound database", "address", d.o.Address, "err", err)
			}
			told = err.Error()
		} else {
			told = ""
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

// Changed tells that rows may differ from what was read last, by whoever's hand, also ours.
func (d *DB) Changed() <-chan struct{} { return d.changed }

// notify is called for every change that is seen; rows tells whether it was one of rows, or only of what is confirmed.
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
	close(d.moved)
	d.moved = make(chan struct{})
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
	return d.conn, d.epoch, d.moved
}

// connected waits for a connection.
func (d *DB) connected(ctx context.Context) (*conn, uint64, error) {
	for {
		c, epoch, moved := d.current()
		if c != nil {
			return c, epoch, nil
		}
		select {
		case <-ctx.Done():
			return nil, 0, fmt.Errorf("no connection to the northbound database %s: %w", d.o.Address, ctx.Err())
		case <-moved:
		}
	}
}

// Have reads the rows there are, and the switch ports of each namespace's pods.
func (d *DB) Have(ctx context.Context) (Rows, map[string][]string, Features, error) {
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

// Mark is a moment of the database: that of a write. The zero Mark is before all writes.
type Mark struct {
	Epoch uint64 // of the connection; others count anew, perhaps in another database
	Cfg   int64
}

// Apply does a transaction. The Mark is for Confirm.
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

// Extend adds addresses to sets, by their names, in one transaction. It neither reads what is there nor waits for a turn, so it
// costs one round trip. When a set is missing, the others are written all the same, and the error is ErrNoSet.
func (d *DB) Extend(ctx context.Context, sets map[string][]string) (Mark, error) {
	c, epoch, err := d.connected(ctx)
	if err != nil {
		return Mark{}, err
	}
	n, err := c.extend(ctx, sets)
	return Mark{epoch, n}, err
}

// Current tells whether m is a write that can still be confirmed.
func (d *DB) Current(m Mark) bool {
	_, epoch, _ := d.current()
	return m != Mark{} && m.Epoch == epoch
}

// Confirm waits until every switch has what was written by m: ovn-northd shows the lowest number of all of them in hv_cfg,
// and its own when there is none. The switch of this machine says it earlier, where it is the only one: see Sole.
func (d *DB) Confirm(ctx context.Context, m Mark) error {
	for m != (Mark{}) {
		c, epoch, moved := d.current()
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
		case <-moved:
		}
	}
	return nil
}
