package ovn

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

const switchSchema = `{"name": "Open_vSwitch", "version": "8.3.1", "tables": {
"Open_vSwitch": {"isRoot": true, "columns": {"external_ids":
  {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
"Bridge": {"isRoot": true, "indexes": [["name"]], "columns": {"name": {"type": "string"},
  "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}}}}`

func textMap(kv ...string) ovsdb.OvsMap {
	m := map[any]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = kv[i+1]
	}
	return ovsdb.OvsMap{GoMap: m}
}

// serveSwitch runs the database of a node's switch. The test has the role of its ovn-controller.
func serveSwitch(t *testing.T, ids ...string) (address string, hand client.Client) {
	address, hand = serveDatabase(t, vswitch, switchSchema,
		map[string]model.Model{vswitch: &vswitchRow{}, bridgeTable: &bridgeRow{}})
	byHand(t, hand, ovsdb.Operation{Op: "insert", Table: vswitch, Row: ovsdb.Row{"external_ids": textMap(ids...)}})
	for _, name := range []string{"br-int", "br-ex"} {
		byHand(t, hand, ovsdb.Operation{Op: "insert", Table: bridgeTable,
			Row: ovsdb.Row{"name": name, "external_ids": textMap()}})
	}
	return address, hand
}

// reach reports as ovn-controller that the switch has applied number n.
func reach(t *testing.T, hand client.Client, bridge, n string) {
	t.Helper()
	byHand(t, hand, ovsdb.Operation{Op: "update", Table: bridgeTable,
		Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, bridge)},
		Row:   ovsdb.Row{"external_ids": textMap("ct-zone-x", "1", reachedKey, n)}})
}

// TestLocalConfirms checks a switch that confirms although the northbound database does not.
func TestLocalConfirms(t *testing.T) {
	nb, _ := serve(t, false)
	for name, tt := range map[string]struct {
		ids    []string
		bridge string
		sole   Node
		want   bool
	}{
		"by name": {[]string{"hostname", "node1", "system-id", "c1"}, "br-int", Node{Name: "node1"}, true},
		"by chassis": {[]string{"hostname", "node1.example.org", "system-id", "c1"}, "br-int", Node{"node1", "c1"},
			true},
		"other bridge":     {[]string{"hostname", "node1", "ovn-bridge", "br-ex"}, "br-ex", Node{Name: "node1"}, true},
		"wrong bridge":     {[]string{"hostname", "node1"}, "br-ex", Node{Name: "node1"}, false},
		"of another node":  {[]string{"hostname", "node2", "system-id", "c2"}, "br-int", Node{Name: "node1"}, false},
		"another chassis":  {[]string{"hostname", "node1", "system-id", "c2"}, "br-int", Node{"node1", "c1"}, false},
		"of several nodes": {[]string{"hostname", "node1"}, "br-int", Node{}, false},
		"of nobody":        {nil, "br-int", Node{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ovs, hand := serveSwitch(t, tt.ids...)
			db := start(t, Options{Address: nb, ManageGroups: true, Switch: ovs})
			db.SetSoleNode(tt.sole)
			m, err := db.Extend(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			reach(t, hand, tt.bridge, strconv.FormatInt(m.Cfg, 10))
			limit := 10 * time.Second
			if !tt.want {
				limit = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if err := db.Confirm(ctx, m); (err == nil) != tt.want {
				t.Errorf("Confirm = %v", err)
			}
			if tt.want != db.LocalConfirms() && tt.bridge == "br-int" {
				t.Errorf("Local = %v", db.LocalConfirms())
			}
		})
	}
}

// TestLocalDoubts checks that a switch that is ahead of the database does not confirm. hv_cfg confirms after the switch
// disconnects.
func TestLocalDoubts(t *testing.T) {
	nb, north := serve(t, false)
	ovs, hand := serveSwitch(t, "hostname", "node1")
	db := start(t, Options{Address: nb, ManageGroups: true, Switch: ovs})
	db.SetSoleNode(Node{Name: "node1"})
	m, err := db.Extend(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	late := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		return db.Confirm(ctx, m)
	}
	reach(t, hand, "br-int", strconv.FormatInt(m.Cfg+1000, 10))
	if err := late(); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("confirmed by a switch that is ahead: %v", err)
	}
	reach(t, hand, "br-int", strconv.FormatInt(m.Cfg, 10))
	if err := db.Confirm(t.Context(), m); err != nil {
		t.Error(err)
	}
	byHand(t, hand, ovsdb.Operation{Op: "delete", Table: bridgeTable,
		Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, "br-int")}})
	for late() == nil {
		time.Sleep(time.Millisecond)
	}
	byHand(t, north, ovsdb.Operation{Op: "update", Table: globalTable,
		Where: []ovsdb.Condition{ovsdb.NewCondition("nb_cfg", ovsdb.ConditionGreaterThan, -1)},
		Row:   ovsdb.Row{"hv_cfg": m.Cfg}})
	if err := db.Confirm(t.Context(), m); err != nil {
		t.Error(err)
	}
}
