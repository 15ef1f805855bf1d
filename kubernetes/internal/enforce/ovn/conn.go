package ovn

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/ovn-kubernetes/libovsdb/cache"
	"github.com/ovn-kubernetes/libovsdb/client"
	"github.com/ovn-kubernetes/libovsdb/model"
	"github.com/ovn-kubernetes/libovsdb/ovsdb"
)

const (
	northbound  = "OVN_Northbound"
	globalTable = "NB_Global"
	portTable   = "Logical_Switch_Port"
)

// Row types with the columns that this package uses, in the form that libovsdb needs.
type (
	globalRow struct {
		UUID  string `ovsdb:"_uuid"`
		NbCfg int    `ovsdb:"nb_cfg"`
		HvCfg int    `ovsdb:"hv_cfg"`
	}
	setRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Addresses   []string          `ovsdb:"addresses"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
	groupRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"`
		Ports       []string          `ovsdb:"ports"`
		ACLs        []string          `ovsdb:"acls"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
	aclRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        *string           `ovsdb:"name"`
		Direction   string            `ovsdb:"direction"`
		Priority    int               `ovsdb:"priority"`
		Match       string            `ovsdb:"match"`
		Action      string            `ovsdb:"action"`
		Log         bool              `ovsdb:"log"`
		Severity    *string           `ovsdb:"severity"`
		Meter       *string           `ovsdb:"meter"`
		Label       int               `ovsdb:"label"`
		Options     map[string]string `ovsdb:"options"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
	// tierRow is aclRow with a column that only later schemas have. libovsdb needs a separate model for it, with all
	// columns.
	tierRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        *string           `ovsdb:"name"`
		Direction   string            `ovsdb:"direction"`
		Priority    int               `ovsdb:"priority"`
		Match       string            `ovsdb:"match"`
		Action      string            `ovsdb:"action"`
		Log         bool              `ovsdb:"log"`
		Severity    *string           `ovsdb:"severity"`
		Meter       *string           `ovsdb:"meter"`
		Label       int               `ovsdb:"label"`
		Options     map[string]string `ovsdb:"options"`
		ExternalIDs map[string]string `ovsdb:"external_ids"`
		Tier        int               `ovsdb:"tier"`
	}
	portRow struct {
		UUID        string            `ovsdb:"_uuid"`
		Name        string            `ovsdb:"name"` // the schema has an index on it
		ExternalIDs map[string]string `ovsdb:"external_ids"`
	}
)

// conn is one connection, with a copy of the tables in use.
type conn struct {
	client   client.Client
	features Features
	global   string       // UUID of the only row of NB_Global
	nb, hv   atomic.Int64 // number of the last write by any client, and number that all switches have applied
	lost     chan struct{}
	notify   func(rows bool)
}

// dial connects, reads the schema to find the features of the database, and copies the tables.
func dial(ctx context.Context, o Options, notify func(rows bool)) (*conn, error) {
	f := Features{ManageGroups: o.ManageGroups, Keep: o.Keep, Stock: o.Stock, Guard: !o.Stock}
	var err error
	if f.Tier, err = hasTier(ctx, o); err != nil {
		return nil, err
	}
	models := map[string]model.Model{globalTable: &globalRow{}, setTable: &setRow{}, groupTable: &groupRow{},
		aclTable: &aclRow{}, portTable: &portRow{}}
	if f.Tier {
		models[aclTable] = &tierRow{}
	}
	c := &conn{features: f, lost: make(chan struct{}), notify: notify}
	if c.client, err = open(ctx, o, northbound, models, c.lost); err != nil {
		return nil, err
	}
	err = c.monitor(ctx, models, cache.EventHandlerFuncs{
		AddFunc:    c.observe,
		UpdateFunc: func(table string, _, m model.Model) { c.observe(table, m) },
		DeleteFunc: func(table string, _ model.Model) { c.observe(table, nil) },
	})
	if err != nil {
		return nil, err
	}
	var globals []globalRow
	if err := c.client.List(ctx, &globals); err != nil || len(globals) != 1 {
		c.client.Close()
		return nil, fmt.Errorf("%s has %d rows, not one: the database is not initialized (%w)", globalTable, len(globals),
			err)
	}
	c.global = globals[0].UUID
	c.nb.Store(max(c.nb.Load(), int64(globals[0].NbCfg)))
	c.hv.Store(max(c.hv.Load(), globals[0].confirmed()))
	return c, nil
}

// monitor copies the tables of models and calls h for each change. It closes the connection if it fails.
func (c *conn) monitor(ctx context.Context, models map[string]model.Model, h cache.EventHandlerFuncs) error {
	c.client.Cache().AddEventHandler(&h)
	var tables []client.MonitorOption
	for _, m := range models {
		tables = append(tables, client.WithTable(m, fields(m)...))
	}
	if _, err := c.client.Monitor(ctx, c.client.NewMonitor(tables...)); err != nil {
		c.client.Close()
		return fmt.Errorf("monitor: %w", err)
	}
	return nil
}

// fields returns pointers to all columns of m except its UUID. Without them libovsdb would request columns that m does
// not have.
func fields(m model.Model) []any {
	v := reflect.ValueOf(m).Elem()
	var out []any
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("ovsdb") != "_uuid" {
			out = append(out, v.Field(i).Addr().Interface())
		}
	}
	return out
}

// hasTier reads the schema with a separate client, because libovsdb needs to know the columns before it connects.
func hasTier(ctx context.Context, o Options) (bool, error) {
	type bare struct {
		UUID string `ovsdb:"_uuid"`
	}
	c, err := open(ctx, o, northbound, map[string]model.Model{globalTable: &bare{}}, nil)
	if err != nil {
		return false, err
	}
	defer c.Close()
	table := c.Schema().Table(aclTable)
	return table != nil && table.Column("tier") != nil, nil
}

func open(ctx context.Context, o Options, database string, models map[string]model.Model,
	lost chan struct{}) (client.Client, error) {
	m, err := model.NewClientDBModel(database, models)
	if err != nil {
		return nil, err
	}
	log := logr.FromSlogHandler(o.Log.Handler())
	options := []client.Option{client.WithEndpoint(o.Address), client.WithLogger(&log)}
	if o.TLS != nil {
		options = append(options, client.WithTLSConfig(o.TLS))
	}
	c, err := client.NewOVSDBClient(m, options...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	if lost != nil {
		go func() {
			<-c.DisconnectNotify()
			close(lost)
		}()
	}
	return c, nil
}

const (
	connectTimeout = 10 * time.Second
	probeInterval  = 5 * time.Second
	probeTimeout   = 3 * time.Second
)

// wait blocks until the connection is lost or ctx ends. It sends echo requests to detect a peer that disappeared
// silently.
func (c *conn) wait(ctx context.Context) {
	defer c.client.Close()
	probe := time.NewTicker(probeInterval)
	defer probe.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.lost:
			return
		case <-probe.C:
			pctx, cancel := context.WithTimeout(ctx, probeTimeout)
			err := c.client.Echo(pctx)
			cancel()
			if err != nil {
				return
			}
		}
	}
}

func (c *conn) observe(table string, m model.Model) {
	if table != globalTable {
		c.notify(true)
		return
	}
	if g, ok := m.(*globalRow); ok {
		nb, hv := int64(g.NbCfg), g.confirmed()
		if nb != c.nb.Swap(nb) || hv != c.hv.Swap(hv) {
			c.notify(false)
		}
	}
}

// confirmed returns the number that all switches have applied. If it is above that of the database, the database was
// restored from a backup, and the number belongs to the state before. The switches follow shortly.
func (g *globalRow) confirmed() int64 {
	if g.HvCfg > g.NbCfg {
		return 0
	}
	return int64(g.HvCfg)
}

// rows returns the existing rows. The local copy is never older than our last transaction, because the server sends
// updates before the reply.
func (c *conn) rows(ctx context.Context) (Rows, error) {
	var sets []setRow
	var groups []groupRow
	if err := errors.Join(c.client.List(ctx, &sets), c.client.List(ctx, &groups)); err != nil {
		return Rows{}, err
	}
	acls, err := c.acls(ctx)
	if err != nil {
		return Rows{}, err
	}
	out := Rows{ACLs: acls}
	for _, s := range sets {
		out.Sets = append(out.Sets, AddressSet{s.UUID, s.Name, s.Addresses, s.ExternalIDs})
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, PortGroup{g.UUID, g.Name, g.Ports, g.ACLs, g.ExternalIDs})
	}
	// A copy that was read while the connection ended is not consistent.
	return out, errors.Join(ctx.Err(), c.alive())
}

func (c *conn) alive() error {
	if !c.client.Connected() {
		return errLost
	}
	return nil
}

func (c *conn) acls(ctx context.Context) ([]ACL, error) {
	var plain []aclRow
	var tiered []tierRow
	list := any(&plain)
	if c.features.Tier {
		list = &tiered
	}
	if err := c.client.List(ctx, list); err != nil {
		return nil, err
	}
	out := make([]ACL, 0, len(plain)+len(tiered))
	for _, a := range plain {
		out = append(out, a.acl())
	}
	for _, t := range tiered {
		a := aclRow{t.UUID, t.Name, t.Direction, t.Priority, t.Match, t.Action, t.Log, t.Severity, t.Meter, t.Label,
			t.Options, t.ExternalIDs}.acl()
		a.Tier = t.Tier
		out = append(out, a)
	}
	return out, nil
}

func (a aclRow) acl() ACL {
	return ACL{UUID: a.UUID, Name: value(a.Name), Direction: a.Direction, Match: a.Match, Action: a.Action,
		Severity: value(a.Severity), Meter: value(a.Meter),
		Priority: a.Priority, Label: a.Label, Log: a.Log, IDs: a.ExternalIDs, Options: a.Options}
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// ports returns the switch ports of each namespace, from the ids that OVN-Kubernetes sets on them.
func (c *conn) ports(ctx context.Context) (map[string][]string, error) {
	if !c.features.ManageGroups {
		return nil, nil
	}
	var rows []portRow
	if err := c.client.List(ctx, &rows); err != nil {
		return nil, err
	}
	out := map[string][]string{}
	for _, r := range rows {
		if ns := r.ExternalIDs["namespace"]; ns != "" {
			out[ns] = append(out[ns], r.UUID)
		}
	}
	return out, errors.Join(ctx.Err(), c.alive())
}

// commit performs ops and increments nb_cfg in one transaction. It returns the new nb_cfg.
func (c *conn) commit(ctx context.Context, ops []ovsdb.Operation) (cfg int64, _ []ovsdb.OperationResult, err error) {
	global := []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: c.global})}
	ops = append(ops,
		ovsdb.Operation{Op: ovsdb.OperationMutate, Table: globalTable, Where: global,
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("nb_cfg", ovsdb.MutateOperationAdd, 1)}},
		ovsdb.Operation{Op: ovsdb.OperationSelect, Table: globalTable, Where: global, Columns: []string{"nb_cfg"}})
	results, err := c.client.Transact(ctx, ops...)
	if err != nil {
		return 0, nil, err
	}
	if _, err := ovsdb.CheckOperationResults(results, ops); err != nil {
		return 0, nil, fmt.Errorf("refused: %w: %s", err, details(results))
	}
	last := results[len(ops)-1]
	if len(last.Rows) != 1 {
		return 0, nil, fmt.Errorf("%s no longer has a row", globalTable)
	}
	switch n := last.Rows[0]["nb_cfg"].(type) {
	case float64:
		cfg = int64(n)
	case int:
		cfg = int64(n)
	}
	return cfg, results, nil
}

func details(results []ovsdb.OperationResult) string {
	var out []string
	for _, r := range results {
		if r.Error != "" {
			out = append(out, r.Error+": "+r.Details)
		}
	}
	return strings.Join(out, "; ")
}

// extend adds addresses to sets by their names. If a set does not exist, it returns ErrNoSet.
func (c *conn) extend(ctx context.Context, sets map[string][]string) (int64, error) {
	var ops []ovsdb.Operation
	for name, addrs := range sets {
		ops = append(ops, ovsdb.Operation{Op: ovsdb.OperationMutate, Table: setTable,
			Where:     []ovsdb.Condition{ovsdb.NewCondition("name", ovsdb.ConditionEqual, name)},
			Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("addresses", ovsdb.MutateOperationInsert, set("addresses", addrs))}})
	}
	cfg, results, err := c.commit(ctx, ops)
	if err != nil {
		return 0, err
	}
	for i := range len(sets) {
		if results[i].Count == 0 {
			return cfg, ErrNoSet
		}
	}
	return cfg, nil
}
