package ovn

import (
	"cmp"
	"context"
	"strconv"
	"sync"

	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/model"
)

const (
	vswitch       = "Open_vSwitch" // name of the database, and of its table with one row
	bridgeTable   = "Bridge"
	defaultBridge = "br-int"
	reachedKey    = "ovn-nb-cfg" // ovn-controller sets it on its bridge when the switch has acknowledged the flows
)

type (
	vswitchRow struct {
		UUID        string            `ovsdb:"_uuid"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
	bridgeRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
)

// Node identifies the node whose switch confirms for a zone.
type Node struct {
	Name    string // external_ids:hostname of its switch
	Chassis string // external_ids:system-id of its switch; if empty, the name decides
}

// local is the state of the switch of this machine. ovn-controller publishes there at once what the switch has applied.
// To reach hv_cfg, the same number goes through the southbound database and ovn-northd. There it also waits for all
// other switches, including dead ones.
type local struct {
	mu      sync.Mutex // guards the fields below
	sole    Node       // the only node of the zone, or zero
	chassis Node       // the node of the switch; zero if not connected
	bridge  string     // name of the integration bridge
	reached map[string]int64
}

// SetSoleNode sets the only node of the zone, or the zero Node. If the switch of that node is the one in
// Options.Switch, its confirmation is sufficient.
func (d *DB) SetSoleNode(n Node) {
	d.local.mu.Lock()
	changed := d.local.sole != n
	d.local.sole = n
	d.local.mu.Unlock()
	if changed {
		d.notify(false)
	}
}

// LocalConfirms reports whether the confirmation of the local switch is sufficient.
func (d *DB) LocalConfirms() bool {
	d.local.mu.Lock()
	defer d.local.mu.Unlock()
	return d.local.speaksLocked()
}

func (l *local) speaksLocked() bool {
	if l.sole == (Node{}) || l.chassis == (Node{}) {
		return false
	}
	if l.sole.Chassis != "" {
		return l.sole.Chassis == l.chassis.Chassis
	}
	return l.sole.Name == l.chassis.Name
}

// confirmed returns the number that the switch has applied, for a database at nb. It returns zero if the switch does
// not confirm for the zone. A number above nb belongs to another database, or to this one before it was restored.
func (l *local) confirmed(nb int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.reached[l.bridge]; n <= nb && l.speaksLocked() {
		return n
	}
	return 0
}

func (l *local) observe(m model.Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch m := m.(type) {
	case *vswitchRow:
		l.chassis = Node{m.ExternalIDs["hostname"], m.ExternalIDs["system-id"]}
		l.bridge = cmp.Or(m.ExternalIDs["ovn-bridge"], defaultBridge)
	case *bridgeRow:
		n, err := strconv.ParseInt(m.ExternalIDs[reachedKey], 10, 64)
		if err != nil {
			delete(l.reached, m.Name)
			return
		}
		l.reached[m.Name] = n
	}
}

func (l *local) forget(m model.Model) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b, ok := m.(*bridgeRow); ok {
		delete(l.reached, b.Name)
	}
}

func (l *local) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.chassis, l.reached = Node{}, map[string]int64{}
}

// follow keeps a connection to the switch until ctx ends. Without a connection, hv_cfg confirms.
func (d *DB) follow(ctx context.Context) {
	lastError := "" // logged once, not with each attempt
	for ctx.Err() == nil {
		d.local.reset()
		err := d.watchSwitch(ctx, func() {
			lastError = ""
			d.o.Log.Info("connected to the switch of this node", "address", d.o.Switch)
		})
		d.local.reset()
		if err != nil && err.Error() != lastError && ctx.Err() == nil {
			lastError = err.Error()
			d.o.Log.Info("no connection to the switch of this node; the northbound database confirms instead", "address",
				d.o.Switch, "err", err)
		}
		pause(ctx)
	}
}

// watchSwitch runs one connection.
func (d *DB) watchSwitch(ctx context.Context, connected func()) error {
	models := map[string]model.Model{vswitch: &vswitchRow{}, bridgeTable: &bridgeRow{}}
	c := &conn{lost: make(chan struct{})}
	var err error
	if c.client, err = open(ctx, Options{Address: d.o.Switch, Log: d.o.Log}, vswitch, models, c.lost); err != nil {
		return err
	}
	err = c.monitor(ctx, models, cache.EventHandlerFuncs{
		AddFunc:    func(_ string, m model.Model) { d.local.observe(m); d.notify(false) },
		UpdateFunc: func(_ string, _, m model.Model) { d.local.observe(m); d.notify(false) },
		DeleteFunc: func(_ string, m model.Model) { d.local.forget(m) },
	})
	if err != nil {
		return err
	}
	connected()
	c.wait(ctx)
	return nil
}
