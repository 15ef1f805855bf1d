package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// tables is a northbound database and the switch behind it. It interprets only address sets.
type tables struct {
	mu        sync.Mutex
	rows      ovn.Rows
	epoch     uint64
	cfg, hv   int64
	progress  chan struct{}
	changed   chan struct{}
	trip      time.Duration // duration of a write
	passTrip  time.Duration // duration of a write by a pass, if different
	lag       time.Duration // delay of the switch
	writes    int
	refuse    error
	after     func() // called once after the next write, before the writer gets the result
	extending int    // maximum number of requests in one Extend
}

func newTables() *tables {
	return &tables{epoch: 1, progress: make(chan struct{}), changed: make(chan struct{}, 1), trip: time.Millisecond,
		lag: 2 * time.Millisecond}
}

func (d *tables) Changed() <-chan struct{} { return d.changed }
func (d *tables) Current(m ovn.Mark) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return m.Epoch == d.epoch
}

func (d *tables) Read(context.Context) (ovn.Rows, map[string][]string, ovn.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := ovn.Rows{ACLs: slices.Clone(d.rows.ACLs)}
	for _, g := range d.rows.Groups {
		g.ACLs = slices.Clone(g.ACLs)
		out.Groups = append(out.Groups, g)
	}
	for _, s := range d.rows.Sets {
		s.Addresses = slices.Clone(s.Addresses)
		out.Sets = append(out.Sets, s)
	}
	return out, nil, ovn.Features{ManageGroups: true, Keep: true}, nil
}

// write performs a write; the switch follows later.
func (d *tables) write(f func()) (ovn.Mark, error) { return d.writeIn(d.trip, f) }

func (d *tables) writeIn(trip time.Duration, f func()) (ovn.Mark, error) {
	time.Sleep(trip)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		return ovn.Mark{}, d.refuse
	}
	f()
	d.cfg++
	d.writes++
	n := d.cfg
	select {
	case d.changed <- struct{}{}:
	default:
	}
	time.AfterFunc(d.lag, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hv = max(d.hv, n)
		close(d.progress)
		d.progress = make(chan struct{})
	})
	m := ovn.Mark{Epoch: d.epoch, Cfg: n}
	if after := d.after; after != nil {
		d.after = nil
		after()
	}
	return m, nil
}

func (d *tables) Apply(_ context.Context, tx ovn.Tx) (ovn.Mark, error) {
	return d.writeIn(max(d.trip, d.passTrip), func() {
		for _, op := range tx.Ops {
			d.op(op)
		}
	})
}

// op supports the operations that a test of one firewall needs: insertions, and changes of address sets and attached
// ACLs, but not of ACLs.
func (d *tables) op(op ovn.Op) {
	resolve := func(refs []string) (out []string) {
		for _, r := range refs {
			if strings.HasPrefix(r, "row") {
				r = fmt.Sprint("u", d.cfg, r)
			}
			out = append(out, r)
		}
		return out
	}
	text := func(column string) string { s, _ := op.Columns[column].(string); return s }
	ids, _ := op.Columns["external_ids"].(map[string]string)
	uuid := resolve([]string{op.Row})[0]
	change := func(set *[]string, values []string) {
		*set = slices.DeleteFunc(*set, func(a string) bool { return slices.Contains(values, a) })
		if op.Verb == ovn.Add {
			*set = append(*set, values...)
		}
	}
	switch op.Table {
	case "ACL":
		d.rows.ACLs = append(d.rows.ACLs,
			ovn.ACL{UUID: uuid, Name: text("name"), Direction: text("direction"), Match: text("match"), Action: text("action"),
				Meter: text("meter"), Priority: op.Columns["priority"].(int), IDs: ids})
	case "Port_Group":
		if op.Verb == ovn.Insert {
			d.rows.Groups = append(d.rows.Groups,
				ovn.PortGroup{UUID: uuid, Name: text("name"), ACLs: resolve(op.Columns["acls"].([]string)), IDs: ids})
			return
		}
		change(&d.rows.Groups[0].ACLs, resolve(op.Values))
	case "Address_Set":
		i := slices.IndexFunc(d.rows.Sets, func(s ovn.AddressSet) bool { return s.UUID == uuid })
		switch op.Verb {
		case ovn.Insert:
			d.rows.Sets = append(d.rows.Sets,
				ovn.AddressSet{UUID: uuid, Name: text("name"), Addresses: slices.Clone(op.Columns["addresses"].([]string)),
					IDs: ids})
		case ovn.Delete:
			d.rows.Sets = slices.Delete(d.rows.Sets, i, i+1)
		default:
			change(&d.rows.Sets[i].Addresses, op.Values)
		}
	}
}

func (d *tables) Extend(_ context.Context, sets map[string][]string) (ovn.Mark, error) {
	missing := false
	m, err := d.write(func() {
		for name, addrs := range sets {
			d.extending = max(d.extending, len(addrs))
			i := slices.IndexFunc(d.rows.Sets, func(s ovn.AddressSet) bool { return s.Name == name })
			if i < 0 {
				missing = true
				continue
			}
			for _, a := range addrs {
				if !slices.Contains(d.rows.Sets[i].Addresses, a) {
					d.rows.Sets[i].Addresses = append(d.rows.Sets[i].Addresses, a)
				}
			}
		}
	})
	if missing {
		return m, ovn.ErrNoSet
	}
	return m, err
}

func (d *tables) Confirm(ctx context.Context, m ovn.Mark) error {
	for {
		d.mu.Lock()
		hv, progress, epoch := d.hv, d.progress, d.epoch
		d.mu.Unlock()
		switch {
		case m == ovn.Mark{}:
			return nil
		case m.Epoch != epoch:
			return errors.New("lost")
		case hv >= m.Cfg:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-progress:
		}
	}
}

// set returns the addresses of a name in the switch.
func (d *tables) set(p enforce.Pattern) []netip.Addr {
	rows, _, _, _ := d.Read(context.Background())
	all, _ := rows.Addresses()
	return all[p]
}

func (d *tables) kept(p enforce.Pattern) []netip.Addr {
	rows, _, _, _ := d.Read(context.Background())
	_, all := rows.Addresses()
	return all[p]
}
