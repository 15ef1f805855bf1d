package ovn

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/database/inmemory"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
	"github.com/ovn-kubernetes/libovsdb/server"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// schema is the part of the northbound schema that this package uses. %TIER% is a column of later versions.
const schema = `{"name": "OVN_Northbound", "version": "7.0.0", "tables": {
"NB_Global": {"isRoot": true, "columns": {"nb_cfg": {"type": "integer"}, "hv_cfg":
  {"type": "integer"}, "name": {"type": "string"}}},
"Address_Set": {"isRoot": true, "indexes": [["name"]], "columns": {"name": {"type": "string"},
  "addresses": {"type": {"key": "string", "min": 0, "max": "unlimited"}},
  "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
"Port_Group": {"isRoot": true, "indexes": [["name"]], "columns": {"name": {"type": "string"},
  "ports": {"type": {"key":
    {"type": "uuid", "refTable": "Logical_Switch_Port", "refType": "weak"}, "min": 0, "max": "unlimited"}},
  "acls": {"type": {"key": {"type": "uuid", "refTable": "ACL", "refType": "strong"}, "min": 0, "max": "unlimited"}},
  "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
"Logical_Switch_Port": {"isRoot": true, "indexes": [["name"]], "columns": {"name": {"type": "string"},
  "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}},
"ACL": {"columns": {
  "name": {"type": {"key": {"type": "string", "maxLength": 63}, "min": 0, "max": 1}}, %TIER%
  "priority": {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 32767}}},
  "direction": {"type": {"key": {"type": "string", "enum": ["set", ["from-lport", "to-lport"]]}}},
  "match": {"type": "string"},
  "action": {"type": {"key": {"type": "string",
    "enum": ["set", ["allow", "allow-related", "allow-stateless", "drop", "reject"]]}}},
  "log": {"type": "boolean"},
  "severity": {"type": {"key": {"type": "string",
    "enum": ["set", ["alert", "warning", "notice", "info", "debug"]]}, "min": 0, "max": 1}},
  "meter": {"type": {"key": "string", "min": 0, "max": 1}},
  "label": {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 4294967295}}},
  "options": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
  "external_ids": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}}}}}}`

// serve runs a separate database, with or without tiers, and a client in the role of ovn-northd and of administrators.
func serve(t *testing.T, tier bool) (address string, hand client.Client) {
	t.Helper()
	models := map[string]model.Model{globalTable: &globalRow{}, setTable: &setRow{}, groupTable: &groupRow{},
		aclTable: &aclRow{}, portTable: &portRow{}}
	text := strings.ReplaceAll(schema, "%TIER%", "")
	if tier {
		models[aclTable] = &tierRow{}
		text = strings.ReplaceAll(schema, "%TIER%",
			`"tier": {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 3}}},`)
	}
	address, hand = serveDatabase(t, northbound, text, models)
	byHand(t, hand, ovsdb.Operation{Op: "insert", Table: globalTable, Row: ovsdb.Row{"nb_cfg": 0, "hv_cfg": 0}})
	return address, hand
}

func serveDatabase(t *testing.T, name, text string, models map[string]model.Model) (address string,
	hand client.Client) {
	t.Helper()
	var sch ovsdb.DatabaseSchema
	if err := json.Unmarshal([]byte(text), &sch); err != nil {
		t.Fatal(err)
	}
	m, err := model.NewClientDBModel(name, models)
	if err != nil {
		t.Fatal(err)
	}
	dm, errs := model.NewDatabaseModel(sch, m)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	log := logr.Discard()
	srv, err := server.NewOvsdbServer(inmemory.NewDatabase(map[string]model.ClientDBModel{name: m}, &log), &log, dm)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "db.sock")
	served := make(chan error, 1)
	go func() { served <- srv.Serve("unix", path) }()
	t.Cleanup(func() {
		srv.Close()
		<-served
	})
	for !srv.Ready() {
		time.Sleep(time.Millisecond)
	}
	address = "unix:" + path
	hand, err = open(t.Context(), Options{Address: address, Log: slog.New(slog.DiscardHandler)}, name, models, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hand.Close)
	return address, hand
}

// byHand changes the database as another client.
func byHand(t *testing.T, c client.Client, ops ...ovsdb.Operation) {
	t.Helper()
	results, err := c.Transact(t.Context(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		t.Fatal(err, details(results))
	}
}

func start(t *testing.T, o Options) *DB {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	db := NewDB(o)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return db
}

// write writes the rows of an input into the database.
func write(t *testing.T, db *DB, w Input) (ops int, m Mark) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	have, ports, f, err := db.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w.Ports = ports
	txs, waiting := Plan(Render(w, f), have, f)
	if len(waiting) > 0 {
		t.Fatalf("waiting for %v", waiting)
	}
	for _, tx := range txs {
		if m, err = db.Apply(ctx, tx); err != nil {
			t.Fatal(err)
		}
		ops += len(tx.Ops)
	}
	return ops, m
}

func named(t *testing.T, list ...string) Input {
	return Input{
		Firewalls: []enforce.Firewall{firewall(t, "ns1", enforce.RuleInput{Type: "Allow", DNSName: "www.example.com"},
			enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"})},
		Learned: map[enforce.Pattern][]netip.Addr{must.Pattern("www.example.com"): addrs(list...)},
		Logging: map[string]Logging{"ns1": {Deny: "info"}},
		V4:      true,
	}
}

// TestDB writes, reads and changes a firewall, with a schema that has tiers and with one that has none.
func TestDB(t *testing.T) {
	for _, tier := range []bool{false, true} {
		address, hand := serve(t, tier)
		byHand(t, hand, ovsdb.Operation{Op: "insert", Table: portTable,
			Row: ovsdb.Row{"name": "ns1_a", "external_ids": ovsdb.OvsMap{GoMap: map[any]any{"namespace": "ns1"}}}})
		db := start(t, Options{Address: address, ManageGroups: true, Keep: true})
		w := named(t, "192.0.2.1")
		write(t, db, w)
		if n, _ := write(t, db, w); n != 0 {
			t.Errorf("tier %v: %d operations left to do", tier, n)
		}
		have, _, f, err := db.Read(t.Context())
		if err != nil || f.Tier != tier {
			t.Fatalf("features %+v, %v", f, err)
		}
		// including two guards
		if len(have.Groups) != 1 || len(have.Groups[0].Ports) != 1 || len(have.Groups[0].ACLs) != 3+2 {
			t.Errorf("groups %+v", have.Groups)
		}
		w.Learned[must.Pattern("www.example.com")] = addrs("192.0.2.2", "192.0.2.3")
		write(t, db, w)
		if n, _ := write(t, db, w); n != 0 {
			t.Errorf("tier %v: %d operations left to do", tier, n)
		}
	}
}

// TestDBConfirms checks that Confirm waits for the switch, whose role the test has, and not only for the database.
func TestDBConfirms(t *testing.T) {
	address, hand := serve(t, false)
	db := start(t, Options{Address: address, ManageGroups: true})
	_, wrote := write(t, db, named(t, "192.0.2.1"))
	set := SetName(must.Pattern("www.example.com"), netip.IPv4Unspecified())
	next, err := db.Extend(t.Context(), map[string][]string{set: {"192.0.2.9", "192.0.2.1"}})
	if err != nil || next.Cfg != wrote.Cfg+1 {
		t.Fatalf("Extend = %v, %v after %v", next, err, wrote)
	}
	done := make(chan error, 1)
	go func() { done <- db.Confirm(t.Context(), next) }()
	arrive := func(n int64) {
		byHand(t, hand, ovsdb.Operation{Op: "update", Table: globalTable,
			Where: []ovsdb.Condition{ovsdb.NewCondition("nb_cfg", ovsdb.ConditionGreaterThan, -1)}, Row: ovsdb.Row{"hv_cfg": n}})
	}
	// Switches that are ahead saw a database that has since been restored from a backup.
	arrive(next.Cfg + 1000)
	arrive(wrote.Cfg)
	if err := db.Confirm(t.Context(), wrote); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		t.Fatalf("confirmed too early: %v", err)
	default:
	}
	arrive(next.Cfg)
	if err := <-done; err != nil {
		t.Error(err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := db.Confirm(short, Mark{next.Epoch, next.Cfg + 1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Confirm of what never comes: %v", err)
	}
	have, _, _, err := db.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"192.0.2.1", "192.0.2.9"}, sorted(have.Sets[0].Addresses)); diff != "" {
		t.Errorf("set (-want +got)\n%s", diff)
	}
}

func TestDBExtendsOthersWhenASetIsMissing(t *testing.T) {
	address, _ := serve(t, false)
	db := start(t, Options{Address: address, ManageGroups: true})
	write(t, db, named(t))
	set := SetName(must.Pattern("www.example.com"), netip.IPv4Unspecified())
	if _, err := db.Extend(t.Context(), map[string][]string{set: {"192.0.2.9"}, "other": {"192.0.2.8"}}); !errors.Is(err,
		ErrNoSet) {
		t.Errorf("Extend = %v, want %v", err, ErrNoSet)
	}
	have, _, _, err := db.Read(t.Context())
	if err != nil || len(have.Sets[0].Addresses) != 1 {
		t.Errorf("sets %+v, %v", have.Sets, err)
	}
}

// TestDBRepairs checks rows that were deleted or edited by hand.
func TestDBRepairs(t *testing.T) {
	address, hand := serve(t, false)
	db := start(t, Options{Address: address, ManageGroups: true})
	w := named(t, "192.0.2.1")
	write(t, db, w)
	for name, op := range map[string]ovsdb.Operation{
		"address set deleted": {Op: "delete", Table: setTable,
			Where: []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionNotEqual, "")}},
		"ACL edited": {Op: "update", Table: aclTable,
			Where: []ovsdb.Condition{ovsdb.NewCondition("priority", ovsdb.ConditionEqual, firstPriority-1)},
			Row:   ovsdb.Row{"action": "allow"}},
	} {
		for len(db.Changed()) > 0 {
			<-db.Changed()
		}
		byHand(t, hand, op)
		<-db.Changed()
		n, _ := write(t, db, w)
		if again, _ := write(t, db, w); n != 1 || again != 0 {
			t.Errorf("%s: repaired by %d operations, then %d", name, n, again)
		}
	}
}

// TestDBReconnects checks that the client reconnects after a lost connection.
func TestDBReconnects(t *testing.T) {
	address, _ := serve(t, false)
	db := start(t, Options{Address: address, ManageGroups: true})
	_, wrote := write(t, db, named(t, "192.0.2.1"))
	waits := make(chan error, 1)
	go func() { waits <- db.Confirm(t.Context(), Mark{wrote.Epoch, wrote.Cfg + 100}) }()
	c, _, _ := db.current()
	c.client.Close()
	if err := <-waits; !errors.Is(err, errLost) {
		t.Errorf("Confirm = %v, want %v", err, errLost)
	}
	if n, _ := write(t, db, named(t, "192.0.2.1")); n != 0 {
		t.Errorf("%d operations after nothing changed", n)
	}
	if db.Current(wrote) || db.Current(Mark{}) {
		t.Error("a write of the old connection still counts")
	}
}
