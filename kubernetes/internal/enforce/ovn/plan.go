package ovn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Verb is what an operation does.
type Verb uint8

const (
	Insert Verb = iota + 1 // a row with Columns; Row is its name within the transaction
	Update                 // Columns of a row
	Delete                 // a row
	Add                    // Values to the set in Column
	Remove                 // Values from the set in Column
)

// Tables we write.
const (
	setTable   = "Address_Set"
	groupTable = "Port_Group"
	aclTable   = "ACL"
)

// Op is one operation on one row.
type Op struct {
	Verb    Verb
	Table   string
	Row     string         // UUID
	Columns map[string]any // string, int, bool, []string or map[string]string
	Column  string
	Values  []string
}

// Tx are operations that are done together or not at all.
type Tx struct {
	Namespace string // whose firewall it is about; empty for address sets
	Takes     bool   // it takes addresses away, and is the last one
	Ops       []Op
}

// Plan finds what leads from have to want: first addresses that come, then each firewall in one step, with what is new, changed
// and stale in it, then addresses that go. So no rule ever names a set that is not there yet, and a reordered firewall is never
// seen half done. Only rows of our kinds are touched. Waiting are namespaces that have no port group, when those are not ours to make.
func Plan(want, have Rows, f Features) (txs []Tx, waiting []string) {
	p := newPlanner(want, have, f)
	come, gone := p.sets()
	txs = appendTx(txs, Tx{Ops: come})
	for _, g := range want.Groups {
		tx, ok := p.firewall(g)
		if !ok {
			waiting = append(waiting, g.IDs[nameKey])
			continue
		}
		txs = appendTx(txs, tx)
	}
	for _, g := range have.Groups {
		txs = appendTx(txs, p.stale(g))
	}
	return appendTx(txs, Tx{Takes: true, Ops: gone}), waiting
}

func appendTx(txs []Tx, tx Tx) []Tx {
	if len(tx.Ops) == 0 {
		return txs
	}
	return append(txs, tx)
}

// planner is have by all that it is looked for by.
type planner struct {
	want, have Rows
	f          Features
	wanted     map[string]ACL // by id
	acls       map[string]ACL // of have, by UUID
	byID       map[string][]string
	groups     map[string]PortGroup // of have, by name
	wantGroups map[string]bool
	frozen     map[string]bool // namespaces
	inserted   int
}

func newPlanner(want, have Rows, f Features) *planner {
	p := &planner{want: want, have: have, f: f, wanted: map[string]ACL{}, acls: map[string]ACL{}, byID: map[string][]string{},
		groups: map[string]PortGroup{}, wantGroups: map[string]bool{}, frozen: map[string]bool{}}
	for _, a := range want.ACLs {
		p.wanted[a.id()] = a
	}
	for _, a := range have.ACLs {
		p.acls[a.UUID] = a
		if a.ours() {
			p.byID[a.id()] = append(p.byID[a.id()], a.UUID)
		}
	}
	for _, g := range have.Groups {
		p.groups[g.Name] = g
	}
	for _, g := range want.Groups {
		p.wantGroups[g.Name] = true
	}
	for _, ns := range want.Frozen {
		p.frozen[ns] = true
		p.wantGroups[groupName(ns)] = true
	}
	return p
}

func (p *planner) sets() (come, gone []Op) {
	have := map[string]AddressSet{}
	for _, s := range p.have.Sets {
		have[s.Name] = s
	}
	for _, w := range p.want.Sets {
		h, ok := have[w.Name]
		if !ok {
			come = append(come, p.insert(setTable, map[string]any{"name": w.Name, "addresses": w.Addresses, "external_ids": w.IDs}))
			continue
		}
		delete(have, w.Name)
		if !maps.Equal(w.IDs, h.IDs) {
			come = append(come, Op{Verb: Update, Table: setTable, Row: h.UUID, Columns: map[string]any{"external_ids": w.IDs}})
		}
		if slices.Equal(w.Addresses, h.Addresses) { // both are sorted, nearly always
			continue
		}
		come = appendSet(come, Add, Op{Table: setTable, Row: h.UUID, Column: "addresses", Values: minus(w.Addresses, h.Addresses)})
		gone = appendSet(gone, Remove, Op{Table: setTable, Row: h.UUID, Column: "addresses", Values: minus(h.Addresses, w.Addresses)})
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if s := have[name]; s.ours() && !p.frozenUses(name) {
			gone = append(gone, Op{Verb: Delete, Table: setTable, Row: s.UUID})
		}
	}
	return come, gone
}

// frozenUses tells whether a rule that must stay names the set.
func (p *planner) frozenUses(set string) bool {
	if len(p.frozen) == 0 {
		return false
	}
	return slices.ContainsFunc(p.have.ACLs, func(a ACL) bool {
		return a.ours() && p.frozen[a.IDs[nameKey]] && (strings.Contains(a.Match, "$"+set+")") || strings.Contains(a.Match, "$"+set+" "))
	})
}

// firewall is one namespace's step, or false when it has to wait for its port group.
func (p *planner) firewall(want PortGroup) (Tx, bool) {
	tx := Tx{Namespace: want.IDs[nameKey]}
	have, ok := p.groups[want.Name]
	if !ok && !p.f.ManageGroups {
		return Tx{}, false
	}
	attached := make(map[string]bool, len(have.ACLs)) // UUIDs
	for _, uuid := range have.ACLs {
		attached[uuid] = true
	}
	stay := make(map[string]bool, len(want.ACLs))
	var attach []string
	for _, id := range want.ACLs {
		uuid, op := p.acl(id, attached)
		stay[uuid] = true
		if op != nil {
			tx.Ops = append(tx.Ops, *op)
		}
		if !attached[uuid] {
			attach = append(attach, uuid)
		}
	}
	if !ok {
		tx.Ops = append(tx.Ops, p.insert(groupTable, map[string]any{"name": want.Name, "ports": want.Ports, "acls": attach, "external_ids": want.IDs}))
		return tx, true
	}
	if p.f.ManageGroups {
		tx.Ops = append(tx.Ops, members(want, have)...)
	}
	tx.Ops = appendSet(tx.Ops, Add, Op{Table: groupTable, Row: have.UUID, Column: "acls", Values: attach})
	detach := slices.DeleteFunc(slices.Clone(have.ACLs), func(uuid string) bool { return stay[uuid] || !p.mayGo(uuid) })
	tx.Ops = appendSet(tx.Ops, Remove, Op{Table: groupTable, Row: have.UUID, Column: "acls", Values: detach})
	return tx, true
}

// acl finds the row of a wanted ACL, or makes it, and says what has to be done to it.
func (p *planner) acl(id string, attached map[string]bool) (uuid string, _ *Op) {
	for _, u := range p.byID[id] {
		// Of several with one id, the one that is attached.
		if uuid == "" || !attached[uuid] && attached[u] {
			uuid = u
		}
	}
	want := p.wanted[id]
	if uuid == "" {
		op := p.insert(aclTable, want.columns(p.f))
		return op.Row, &op
	}
	if want.same(p.acls[uuid]) {
		return uuid, nil
	}
	changed := map[string]any{}
	have := p.acls[uuid].columns(p.f)
	for column, v := range want.columns(p.f) {
		if !equal(v, have[column]) {
			changed[column] = v
		}
	}
	return uuid, &Op{Verb: Update, Table: aclTable, Row: uuid, Columns: changed}
}

// stale takes our ACLs out of a group that no firewall has, and the group away, if we made it and nobody else uses it.
func (p *planner) stale(have PortGroup) Tx {
	if p.wantGroups[have.Name] {
		return Tx{}
	}
	tx := Tx{Namespace: have.IDs[nameKey]}
	ours := slices.DeleteFunc(slices.Clone(have.ACLs), func(uuid string) bool { return !p.mayGo(uuid) })
	if p.f.ManageGroups && have.IDs[madeKey] != "" && len(ours) == len(have.ACLs) {
		tx.Ops = []Op{{Verb: Delete, Table: groupTable, Row: have.UUID}}
		return tx
	}
	tx.Ops = appendSet(nil, Remove, Op{Table: groupTable, Row: have.UUID, Column: "acls", Values: ours})
	return tx
}

// mayGo tells whether an ACL is ours to detach: of our kinds, or one that somebody took the ids from.
func (p *planner) mayGo(uuid string) bool {
	a := p.acls[uuid]
	return a.ours() || a.IDs[idKey] == "" && slices.ContainsFunc([]string{"EF:", "EFK:", "EFG:"}, func(p string) bool { return strings.HasPrefix(a.Name, p) })
}

// members are what is to be done to a group besides its ACLs. Ids that others put there stay. A group that others made does not become
// ours by having a firewall, or we would delete it with that; one that has no id any more was ours or nobody's.
func members(want, have PortGroup) (ops []Op) {
	all := maps.Clone(want.IDs)
	if have.IDs[idKey] != "" && have.IDs[madeKey] == "" {
		delete(all, madeKey)
	}
	for k, v := range have.IDs {
		if _, ok := all[k]; !ok {
			all[k] = v
		}
	}
	if !maps.Equal(all, have.IDs) {
		ops = append(ops, Op{Verb: Update, Table: groupTable, Row: have.UUID, Columns: map[string]any{"external_ids": all}})
	}
	ops = appendSet(ops, Add, Op{Table: groupTable, Row: have.UUID, Column: "ports", Values: minus(want.Ports, have.Ports)})
	return appendSet(ops, Remove, Op{Table: groupTable, Row: have.UUID, Column: "ports", Values: minus(have.Ports, want.Ports)})
}

func (p *planner) insert(table string, columns map[string]any) Op {
	p.inserted++
	return Op{Verb: Insert, Table: table, Row: fmt.Sprintf("row%d", p.inserted), Columns: columns}
}

func (a ACL) columns(f Features) map[string]any {
	m := map[string]any{"name": a.Name, "direction": a.Direction, "priority": a.Priority, "match": a.Match, "action": a.Action,
		"log": a.Log, "severity": a.Severity, "meter": a.Meter, "label": a.Label, "options": a.Options, "external_ids": a.IDs}
	if f.Tier {
		m["tier"] = a.Tier
	}
	return m
}

// same tells whether two rows differ in nothing but their UUIDs. Nearly all of nearly all passes are.
func (a ACL) same(b ACL) bool {
	return a.Name == b.Name && a.Direction == b.Direction && a.Match == b.Match && a.Action == b.Action && a.Severity == b.Severity && a.Meter == b.Meter &&
		a.Priority == b.Priority && a.Tier == b.Tier && a.Label == b.Label && a.Log == b.Log && maps.Equal(a.IDs, b.IDs) && maps.Equal(a.Options, b.Options)
}

func equal(a, b any) bool {
	if m, ok := a.(map[string]string); ok {
		n, _ := b.(map[string]string)
		return maps.Equal(m, n)
	}
	return a == b
}

func appendSet(ops []Op, v Verb, op Op) []Op {
	if len(op.Values) == 0 {
		return ops
	}
	op.Verb = v
	return append(ops, op)
}

// minus are those of a that are not in b.
func minus(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return in[s] })
}

// Spare is tx without taking those addresses from their names that stays says yes to. It asks for each that would go.
func (tx Tx) Spare(have Rows, stays func(enforce.Pattern, netip.Addr) bool) Tx {
	names := map[string]enforce.Pattern{} // by UUID of the set
	for _, op := range tx.Ops {
		if op.Verb == Remove && op.Table == setTable {
			names[op.Row] = enforce.Pattern{}
		}
	}
	for _, s := range have.Sets {
		if _, ok := names[s.UUID]; !ok {
			continue // of thousands
		}
		if p, err := enforce.ParsePattern(s.IDs[nameKey], enforce.PatternOptions{Deep: true}); err == nil && s.IDs[typeKey] == setType {
			names[s.UUID] = p
		}
	}
	out := Tx{Namespace: tx.Namespace, Takes: tx.Takes}
	for _, op := range tx.Ops {
		if p := names[op.Row]; !p.IsZero() && op.Verb == Remove {
			op.Values = slices.DeleteFunc(slices.Clone(op.Values), func(text string) bool {
				a, err := netip.ParseAddr(text)
				return err == nil && stays(p, a)
			})
			out.Ops = appendSet(out.Ops, Remove, op)
			continue
		}
		out.Ops = append(out.Ops, op)
	}
	return out
}
