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
	vswitch       = "Open_vSwitch" // the database, and its table of one row
	bridgeTable   = "Bridge"
	defaultBridge = "br-int"
	reachedKey    = "ovn-nb-cfg" // what ovn-controller writes on its bridge when the switch has acknowledged the flows of it
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

// Node is whose switch speaks for a zone.
type Node struct {
	Name    string // as in external_ids:hostname of its switch
	Chassis string // as in external_ids:system-id; empty: not known, the name decides
}

// local is the switch of the machine we are on. What it has, ovn-controller writes there at once. The same number takes a way through
// the southbound database and ovn-northd to hv_cfg, where it waits for all other switches too, those that are dead among them.
type local struct {
	mu      sync.Mutex // guards all below
	sole    Node       // the only one of the zone, or zero
	chassis Node       // whose switch it is; zero while not connected
	bridge  string     // the name of the integration bridge
	reached map[string]int64
}

// Sole says which node is the only one of the zone, if one is. When its switch is the one of Options.Switch, that alone confirms.
func (d *DB) Sole(n Node) {
	d.local.mu.Lock()
	changed := d.local.sole != n
	d.local.sole = n
	d.local.mu.Unlock()
	if changed {
		d.notify(false)
	}
}

// Local tells whether the switch of this machine confirms.
func (d *DB) Local() bool {
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

// confirmed is what the switch has, of a database that is at nb; zero when it does not speak for the zone. One that is ahead speaks of
// another database, or of this one before it was set back.
func (l *local) confirmed(nb int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.reached[l.bridge]; n <= nb && l.speaksLocked() {
		return n
	}
	return 0
}

func (l *local) saw(m model.Model) {
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

func (l *local) gone(m model.Model) {
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

// follow stays connected to the switch until ctx ends. Without it hv_cfg confirms.
func (d *DB) follow(ctx context.Context) {
	told := "" // the last error, which is not told again twice a second
	for ctx.Err() == nil {
		d.local.reset()
		err := d.watchSwitch(ctx, func() {
			told = ""
			d.o.Log.Info("connected to the switch of this node", "address", d.o.Switch)
		})
		d.local.reset()
		if err != nil && err.Error() != told && ctx.Err() == nil {
			told = err.Error()
			d.o.Log.Info("the switch of this node is not there to confirm, the northbound database does", "address", d.o.Switch, "err", err)
		}
		pause(ctx)
	}
}

// watchSwitch is one connection.
func (d *DB) watchSwitch(ctx context.Context, connected func()) error {
	models := map[string]model.Model{vswitch: &vswitchRow{}, bridgeTable: &bridgeRow{}}
	c := &conn{lost: make(chan struct{})}
	var err error
	if c.client, err = open(ctx, Options{Address: d.o.Switch, Log: d.o.Log}, vswitch, models, c.lost); err != nil {
		return err
	}
	err = c.monitor(ctx, models, cache.EventHandlerFuncs{
		AddFunc:    func(_ string, m model.Model) { d.local.saw(m); d.notify(false) },
		UpdateFunc: func(_ string, _, m model.Model) { d.local.saw(m); d.notify(false) },
		DeleteFunc: func(_ string, m model.Model) { d.local.gone(m) },
	})
	if err != nil {
		return err
	}
	connected()
	c.wait(ctx)
	return nil
}
