package ovn

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// Verb is the kind of an operation.
type Verb uint8

const (
	Insert Verb = iota + 1 // inserts a row with Columns; Row is its name within the transaction
	Update                 // sets Columns of a row
	Delete                 // deletes a row
	Add                    // adds Values to the set in Column
	Remove                 // removes Values from the set in Column
)

// Tables that this package writes.
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

// Tx is a list of operations that are performed atomically.
type Tx struct {
	Namespace string // namespace of the firewall; empty for address sets
	Removes   bool   // the transaction removes addresses, and is the last one
	Ops       []Op
}

// Plan returns the transactions that lead from have to want. The first one adds addresses. Then there is one
// transaction per firewall, with all its new, changed and stale rows. The last one removes addresses. Thus no rule
// refers to a missing set, and a reordered firewall is never visible half done. Plan touches only rows of the kinds
// that this package writes. waiting lists the namespaces without a port group, if this package does not create them.
func Plan(want, have Rows, f Features) (txs []Tx, waiting []string) {
	p := newPlanner(want, have, f)
	additions, removals := p.sets()
	txs = appendTx(txs, Tx{Ops: additions})
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
	return appendTx(txs, Tx{Removes: true, Ops: removals}), waiting
}

func appendTx(txs []Tx, tx Tx) []Tx {
	if len(tx.Ops) == 0 {
		return txs
	}
	return append(txs, tx)
}

// planner has indexes of the existing and the wanted rows.
type planner struct {
	want, have Rows
	f          Features
	wanted     map[string]ACL // by id
	acls       map[string]ACL // existing ACLs, by UUID
	byID       map[string][]string
	groups     map[string]PortGroup // existing groups, by name
	wantGroups map[string]bool
	frozen     map[string]bool // namespaces
	inserted   int
}

func newPlanner(want, have Rows, f Features) *planner {
	p := &planner{want: want, have: have, f: f, wanted: map[string]ACL{}, acls: map[string]ACL{},
		byID:   map[string][]string{},
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

func (p *planner) sets() (additions, removals []Op) {
	have := map[string]AddressSet{}
	for _, s := range p.have.Sets {
		have[s.Name] = s
	}
	for _, w := range p.want.Sets {
		h, ok := have[w.Name]
		if !ok {
			additions = append(additions, p.insert(setTable,
				map[string]any{"name": w.Name, "addresses": w.Addresses, "external_ids": w.IDs}))
			continue
		}
		delete(have, w.Name)
		if !maps.Equal(w.IDs, h.IDs) {
			additions = append(additions, Op{Verb: Update, Table: setTable, Row: h.UUID,
				Columns: map[string]any{"external_ids": w.IDs}})
		}
		if slices.Equal(w.Addresses, h.Addresses) { // both are sorted in most cases
			continue
		}
		additions = appendSet(additions, Add,
			Op{Table: setTable, Row: h.UUID, Column: "addresses", Values: minus(w.Addresses, h.Addresses)})
		removals = appendSet(removals, Remove,
			Op{Table: setTable, Row: h.UUID, Column: "addresses", Values: minus(h.Addresses, w.Addresses)})
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if s := have[name]; s.ours() && !p.frozenUses(name) {
			removals = append(removals, Op{Verb: Delete, Table: setTable, Row: s.UUID})
		}
	}
	return additions, removals
}

// frozenUses reports whether a rule of a frozen firewall refers to the set.
func (p *planner) frozenUses(set string) bool {
	if len(p.frozen) == 0 {
		return false
	}
	return slices.ContainsFunc(p.have.ACLs, func(a ACL) bool {
		return a.ours() && p.frozen[a.IDs[nameKey]] &&
			(strings.Contains(a.Match, "$"+set+")") || strings.Contains(a.Match, "$"+set+" "))
	})
}

// firewall returns the transaction of one namespace. It returns false if the namespace must wait for its port group.
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
		tx.Ops = append(tx.Ops, p.insert(groupTable,
			map[string]any{"name": want.Name, "ports": want.Ports, "acls": attach, "external_ids": want.IDs}))
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

// acl returns the UUID of the row of a wanted ACL, and the operation that creates or changes it. The operation is nil
// if there is nothing to do.
func (p *planner) acl(id string, attached map[string]bool) (uuid string, _ *Op) {
	for _, u := range p.byID[id] {
		// If several rows have the id, prefer an attached one.
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

// stale detaches our ACLs from a group without a firewall. It deletes the group if this package created it and nothing
// else uses it.
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

// mayGo reports whether this package may detach an ACL: it is of our kinds, or another program removed its ids.
func (p *planner) mayGo(uuid string) bool {
	a := p.acls[uuid]
	return a.ours() || a.IDs[idKey] == "" &&
		slices.ContainsFunc([]string{"EF:", "EFK:", "EFG:"}, func(p string) bool { return strings.HasPrefix(a.Name, p) })
}

// members returns the operations on a group other than those on its ACLs. Ids of other programs stay. A group that
// another program created does not become ours by having a firewall: otherwise it would be deleted with the firewall. A
// group without an id was ours or nobody's.
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
	ops = appendSet(ops, Add, Op{Table: groupTable, Row: have.UUID, Column: "ports",
		Values: minus(want.Ports, have.Ports)})
	return appendSet(ops, Remove, Op{Table: groupTable, Row: have.UUID, Column: "ports",
		Values: minus(have.Ports, want.Ports)})
}

func (p *planner) insert(table string, columns map[string]any) Op {
	p.inserted++
	return Op{Verb: Insert, Table: table, Row: fmt.Sprintf("row%d", p.inserted), Columns: columns}
}

func (a ACL) columns(f Features) map[string]any {
	m := map[string]any{"name": a.Name, "direction": a.Direction, "priority": a.Priority, "match": a.Match,
		"action": a.Action,
		"log":    a.Log, "severity": a.Severity, "meter": a.Meter, "label": a.Label, "options": a.Options,
		"external_ids": a.IDs}
	if f.Tier {
		m["tier"] = a.Tier
	}
	return m
}

// same reports whether two rows differ only in their UUIDs. In most passes, most rows are equal.
func (a ACL) same(b ACL) bool {
	return a.Name == b.Name && a.Direction == b.Direction && a.Match == b.Match && a.Action == b.Action &&
		a.Severity == b.Severity && a.Meter == b.Meter &&
		a.Priority == b.Priority && a.Tier == b.Tier && a.Label == b.Label && a.Log == b.Log && maps.Equal(a.IDs, b.IDs) &&
		maps.Equal(a.Options, b.Options)
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

// minus returns the elements of a that are not in b.
func minus(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return in[s] })
}

// Except returns tx without the removal of the addresses for which stays returns true. It calls stays for each address
// that tx would remove.
func (tx Tx) Except(have Rows, stays func(enforce.Pattern, netip.Addr) bool) Tx {
	names := map[string]enforce.Pattern{} // by UUID of the set
	for _, op := range tx.Ops {
		if op.Verb == Remove && op.Table == setTable {
			names[op.Row] = enforce.Pattern{}
		}
	}
	for _, s := range have.Sets {
		if _, ok := names[s.UUID]; !ok {
			continue // skip thousands of other sets
		}
		if p, err := enforce.ParsePattern(s.IDs[nameKey], enforce.PatternOptions{Deep: true}); err == nil &&
			s.IDs[typeKey] == setType {
			names[s.UUID] = p
		}
	}
	out := Tx{Namespace: tx.Namespace, Removes: tx.Removes}
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
