package ovn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// database applies operations to rows like the real database, including references and garbage collection.
type database struct {
	t    *testing.T
	rows Rows
	next int
}

func (d *database) apply(txs []Tx) (ops int) {
	d.t.Helper()
	for _, tx := range txs {
		names := map[string]string{}
		for _, op := range tx.Ops {
			if op.Verb == Insert {
				d.next++
				names[op.Row] = fmt.Sprintf("uuid%d", d.next)
			}
		}
		for _, op := range tx.Ops {
			d.op(op, names)
			ops++
		}
		d.collect()
	}
	return ops
}

func (d *database) op(op Op, names map[string]string) {
	resolve := func(in []string) []string {
		out := slices.Clone(in)
		for i, s := range out {
			if u, ok := names[s]; ok {
				out[i] = u
			}
		}
		return out
	}
	row := resolve([]string{op.Row})[0]
	switch op.Table {
	case setTable:
		d.rows.Sets = edit(d.t, d.rows.Sets, op, func(s AddressSet) bool { return s.UUID == row }, func(s *AddressSet) {
			s.UUID = row
			setColumn(op, "name", &s.Name)
			setColumn(op, "external_ids", &s.IDs)
			setColumn(op, "addresses", &s.Addresses)
			mutate(d.t, op, "addresses", &s.Addresses, op.Values)
		})
	case groupTable:
		d.rows.Groups = edit(d.t, d.rows.Groups, op, func(g PortGroup) bool { return g.UUID == row }, func(g *PortGroup) {
			g.UUID = row
			setColumn(op, "name", &g.Name)
			setColumn(op, "external_ids", &g.IDs)
			setColumn(op, "ports", &g.Ports)
			setColumn(op, "acls", &g.ACLs)
			g.ACLs = resolve(g.ACLs)
			mutate(d.t, op, "acls", &g.ACLs, resolve(op.Values))
			mutate(d.t, op, "ports", &g.Ports, op.Values)
		})
	case aclTable:
		d.rows.ACLs = edit(d.t, d.rows.ACLs, op, func(a ACL) bool { return a.UUID == row }, func(a *ACL) {
			a.UUID = row
			for column, p := range map[string]*string{"name": &a.Name, "direction": &a.Direction, "match": &a.Match,
				"action": &a.Action, "severity": &a.Severity, "meter": &a.Meter} {
				setColumn(op, column, p)
			}
			for column, p := range map[string]*int{"priority": &a.Priority, "tier": &a.Tier, "label": &a.Label} {
				setColumn(op, column, p)
			}
			setColumn(op, "log", &a.Log)
			setColumn(op, "external_ids", &a.IDs)
			setColumn(op, "options", &a.Options)
		})
	}
}

func edit[T any](t *testing.T, rows []T, op Op, is func(T) bool, change func(*T)) []T {
	t.Helper()
	if op.Verb == Insert {
		var row T
		change(&row)
		return append(rows, row)
	}
	i := slices.IndexFunc(rows, is)
	if i < 0 {
		t.Fatalf("no row for %+v", op)
	}
	if op.Verb == Delete {
		return slices.Delete(rows, i, i+1)
	}
	change(&rows[i])
	return rows
}

func setColumn[T any](op Op, column string, to *T) {
	if v, ok := op.Columns[column]; ok {
		*to = v.(T)
	}
}

func mutate(t *testing.T, op Op, column string, to *[]string, values []string) {
	t.Helper()
	if op.Column != column {
		return
	}
	out := slices.Clone(*to)
	for _, v := range values {
		i := slices.Index(out, v)
		if (i >= 0) != (op.Verb == Remove) {
			t.Errorf("useless: %+v on %v", op, *to)
		}
		if op.Verb == Add {
			out = append(out, v)
		} else {
			out = slices.Delete(out, i, i+1)
		}
	}
	*to = out
}

// collect deletes ACLs that no group references.
func (d *database) collect() {
	d.rows.ACLs = slices.DeleteFunc(d.rows.ACLs, func(a ACL) bool {
		return !slices.ContainsFunc(d.rows.Groups, func(g PortGroup) bool { return slices.Contains(g.ACLs, a.UUID) })
	})
}

// wanted returns have in the form in which Render returns rows.
func wanted(have Rows) Rows {
	ids := map[string]string{}
	out := Rows{}
	for _, a := range have.ACLs {
		ids[a.UUID] = a.id()
		a.UUID = ""
		out.ACLs = append(out.ACLs, a)
	}
	for _, s := range have.Sets {
		s.UUID, s.Addresses = "", sorted(s.Addresses)
		out.Sets = append(out.Sets, s)
	}
	for _, g := range have.Groups {
		g.UUID, g.Ports, g.ACLs = "", sorted(g.Ports), slices.Clone(g.ACLs)
		for i, u := range g.ACLs {
			g.ACLs[i] = ids[u]
		}
		out.Groups = append(out.Groups, g)
	}
	return out
}

var unordered = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b string) bool { return a < b }),
	cmpopts.SortSlices(func(a, b ACL) bool { return a.id() < b.id() }),
	cmpopts.SortSlices(func(a, b AddressSet) bool { return a.Name < b.Name }),
	cmpopts.SortSlices(func(a, b PortGroup) bool { return a.Name < b.Name }),
}

func randomInput(t *testing.T, r *rand.Rand) Input {
	w := Input{Learned: map[enforce.Pattern][]netip.Addr{}, Kept: map[enforce.Pattern][]netip.Addr{},
		Ports: map[string][]string{}, Logging: map[string]Logging{},
		ClusterSubnets: prefixes("10.244.0.0/16"), V4: r.IntN(8) > 0, V6: r.IntN(2) == 0}
	names := []string{"a.example.com", "b.example.com", "*.example.com"}
	for _, n := range names {
		for _, m := range []map[enforce.Pattern][]netip.Addr{w.Learned, w.Kept} {
			for range r.IntN(4) {
				m[must.Pattern(n)] = append(m[must.Pattern(n)],
					addrs([]string{fmt.Sprintf("192.0.2.%d", r.IntN(5)), fmt.Sprintf("2001:db8::%d", r.IntN(5))}[r.IntN(2)])...)
			}
		}
	}
	for i := range r.IntN(4) {
		ns := fmt.Sprintf("ns%d", i)
		var in []enforce.RuleInput
		for range r.IntN(5) {
			rule := enforce.RuleInput{Type: []string{"Allow", "Deny"}[r.IntN(2)]}
			if r.IntN(2) == 0 {
				rule.DNSName = names[r.IntN(len(names))]
			} else {
				rule.CIDR = fmt.Sprintf("198.51.%d.0/24", r.IntN(3))
			}
			in = append(in, rule)
		}
		w.Firewalls = append(w.Firewalls, firewall(t, ns, in...))
		for range r.IntN(4) {
			w.Ports[ns] = append(w.Ports[ns], fmt.Sprintf("port%d", r.IntN(6)))
		}
		w.Logging[ns] = Logging{Deny: []string{"", "alert"}[r.IntN(2)]}
	}
	return w
}

// vandalize makes changes that a person with ovn-nbctl might make.
func vandalize(r *rand.Rand, rows *Rows) {
	for range r.IntN(3) {
		switch n := len(rows.ACLs); {
		case n > 0 && r.IntN(2) == 0:
			a := &rows.ACLs[r.IntN(n)]
			switch r.IntN(4) {
			case 0:
				a.Match = "1"
			case 1:
				a.Options, a.Label = map[string]string{"x": "y"}, 7
			case 2:
				a.IDs = nil
			case 3:
				a.Action, a.Priority = "allow", 1
			}
		case len(rows.Sets) > 0 && r.IntN(2) == 0:
			i := r.IntN(len(rows.Sets))
			switch r.IntN(3) {
			case 0:
				rows.Sets = slices.Delete(rows.Sets, i, i+1)
			case 1:
				rows.Sets[i].Addresses = []string{"203.0.113.1"}
			case 2:
				rows.Sets[i].IDs = map[string]string{controllerKey: stockController, typeKey: setType}
			}
		case len(rows.Groups) > 0:
			i := r.IntN(len(rows.Groups))
			g := &rows.Groups[i]
			switch r.IntN(3) {
			case 0:
				g.ACLs = nil
			case 1:
				g.Ports = append(slices.Clone(g.Ports), "portX")
			case 2:
				rows.Groups = slices.Delete(rows.Groups, i, i+1)
			}
		}
	}
}

// TestPlanModel leads databases from one random input to the next, with hand edits in between. It checks that the
// result equals the rendered rows, that other rows are unchanged, and that a second plan is empty.
func TestPlanModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		f := Features{Tier: r.IntN(2) == 0, ManageGroups: true, Keep: r.IntN(2) == 0}
		d := &database{t: t}
		for range 6 {
			want := Render(randomInput(t, r), f)
			txs, waiting := Plan(want, d.rows, f)
			d.apply(txs)
			if len(waiting) > 0 {
				t.Fatalf("seed %d: waits for %v", seed, waiting)
			}
			if diff := cmp.Diff(want, wanted(d.rows), unordered); diff != "" {
				t.Fatalf("seed %d (-want +got)\n%s", seed, diff)
			}
			if txs, _ := Plan(want, d.rows, f); len(txs) > 0 {
				t.Fatalf("seed %d: not done: %+v", seed, txs)
			}
			vandalize(r, &d.rows)
			d.collect()
		}
	}
}

// rig returns a database with one firewall.
func rig(t *testing.T, w Input, f Features) *database {
	t.Helper()
	d := &database{t: t}
	txs, _ := Plan(Render(w, f), d.rows, f)
	d.apply(txs)
	return d
}

func denies(t *testing.T, n int) Input {
	in := make([]enforce.RuleInput, n)
	for i := range in {
		in[i] = enforce.RuleInput{Type: "Deny", CIDR: fmt.Sprintf("198.51.%d.0/24", i)}
	}
	return Input{Firewalls: []enforce.Firewall{firewall(t, "ns1", in...)}, V4: true}
}

// TestPlanShrinks checks that a firewall that loses its last rule does not keep it in the switch.
func TestPlanShrinks(t *testing.T) {
	f := Features{ManageGroups: true}
	d := rig(t, denies(t, 3), f)
	for n := 2; n >= 0; n-- {
		txs, _ := Plan(Render(denies(t, n), f), d.rows, f)
		if len(txs) != 1 {
			t.Errorf("to %d rules: %d transactions", n, len(txs))
		}
		d.apply(txs)
		if len(d.rows.ACLs) != n || len(d.rows.Groups[0].ACLs) != n {
			t.Errorf("to %d rules: %d ACLs, %d attached", n, len(d.rows.ACLs), len(d.rows.Groups[0].ACLs))
		}
	}
	txs, _ := Plan(Rows{}, d.rows, f)
	d.apply(txs)
	if len(d.rows.Groups) != 0 {
		t.Error("the group is left")
	}
}

// TestPlanDelta checks that a new address does not rewrite the other ones.
func TestPlanDelta(t *testing.T) {
	name := must.Pattern("a.example.com")
	w := Input{Firewalls: []enforce.Firewall{firewall(t, "ns1",
		enforce.RuleInput{Type: "Allow", DNSName: "a.example.com"})}, V4: true,
		Learned: map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.1", "192.0.2.2")}}
	f := Features{ManageGroups: true}
	d := rig(t, w, f)
	w.Learned[name] = addrs("192.0.2.2", "192.0.2.3")
	txs, _ := Plan(Render(w, f), d.rows, f)
	set := d.rows.Sets[0].UUID
	want := []Tx{
		{Ops: []Op{{Verb: Add, Table: setTable, Row: set, Column: "addresses", Values: []string{"192.0.2.3"}}}},
		{Removes: true, Ops: []Op{{Verb: Remove, Table: setTable, Row: set, Column: "addresses",
			Values: []string{"192.0.2.1"}}}},
	}
	if diff := cmp.Diff(want, txs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var asked []string
	spare := func(stays bool) Tx {
		return txs[1].Except(d.rows, func(p enforce.Pattern, a netip.Addr) bool {
			asked = append(asked, p.String()+a.String())
			return stays
		})
	}
	if diff := cmp.Diff(want[1], spare(false)); diff != "" {
		t.Errorf("nothing spared (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Tx{Removes: true}, spare(true)); diff != "" {
		t.Errorf("spared (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.example.com.192.0.2.1", "a.example.com.192.0.2.1"}, asked); diff != "" {
		t.Errorf("asked (-want +got)\n%s", diff)
	}
}

// TestPlanReorders checks that two rules are swapped in one transaction, so that the order is never wrong.
func TestPlanReorders(t *testing.T) {
	f := Features{ManageGroups: true}
	w := denies(t, 2)
	d := rig(t, w, f)
	rules := w.Firewalls[0].Rules
	rules[0].CIDR, rules[1].CIDR = rules[1].CIDR, rules[0].CIDR
	txs, _ := Plan(Render(w, f), d.rows, f)
	if len(txs) != 1 || len(txs[0].Ops) != 2 || txs[0].Namespace != "ns1" {
		t.Fatalf("%+v", txs)
	}
	for _, op := range txs[0].Ops {
		if op.Verb != Update || !slices.Equal(slices.Collect(maps.Keys(op.Columns)), []string{"match"}) {
			t.Errorf("%+v", op)
		}
	}
}

// TestPlanLeavesOthersAlone checks that rows of network policies, namespaces and other groups stay unchanged. So do
// groups that another program created for namespaces with a firewall, even if they contain only our ACLs.
func TestPlanLeavesOthersAlone(t *testing.T) {
	others := Rows{
		Sets: []AddressSet{{UUID: "s", Name: "a1", Addresses: []string{"192.0.2.1"},
			IDs: map[string]string{controllerKey: stockController, typeKey: "NetworkPolicy"}}},
		Groups: []PortGroup{{UUID: "g", Name: groupName("ns1"), Ports: []string{"p"}, ACLs: []string{"x"},
			IDs: groupIDs("ns1")}, {UUID: "h", Name: "a2", ACLs: []string{"y"}, IDs: groupIDs("ns2")}, {UUID: "e", Name: "a3",
			IDs: groupIDs("ns3")},
			{UUID: "b", Name: groupName("ns4"), Ports: []string{"q"}, IDs: groupIDs("ns4")}},
		ACLs: []ACL{{UUID: "x", Name: "NP:ns1:0",
			IDs: map[string]string{idKey: "i", controllerKey: stockController, typeKey: "NetworkPolicy"}},
			{UUID: "y", Name: "by hand"}},
	}
	for _, f := range []Features{{}, {ManageGroups: true}} {
		d := &database{t: t, rows: Rows{slices.Clone(others.Sets), slices.Clone(others.Groups), slices.Clone(others.ACLs),
			nil}}
		w := denies(t, 1)
		w.Firewalls = append(w.Firewalls, firewall(t, "ns4", enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"}))
		w.Ports = map[string][]string{"ns1": {"p"}, "ns4": {"q"}}
		txs, waiting := Plan(Render(w, f), d.rows, f)
		d.apply(txs)
		if len(waiting) > 0 || len(d.rows.Groups[0].ACLs) != 2 {
			t.Errorf("%+v: %v, %+v", f, waiting, d.rows.Groups)
		}
		txs, _ = Plan(Rows{}, d.rows, f)
		d.apply(txs)
		if diff := cmp.Diff(others, d.rows, unordered); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", f, diff)
		}
	}
}

func TestPlanWaitsForGroups(t *testing.T) {
	txs, waiting := Plan(Render(denies(t, 1), Features{}), Rows{}, Features{})
	if len(txs) != 0 || !slices.Equal(waiting, []string{"ns1"}) {
		t.Errorf("%+v, waiting for %v", txs, waiting)
	}
}

// TestPlanFreezes checks that the rows of an unreadable firewall stay, with the sets that they refer to.
func TestPlanFreezes(t *testing.T) {
	f := Features{ManageGroups: true, Keep: true}
	d := rig(t, Input{Firewalls: []enforce.Firewall{
		firewall(t, "ns1", enforce.RuleInput{Type: "Allow", DNSName: "a.example.com"}),
		firewall(t, "ns2", enforce.RuleInput{Type: "Allow", DNSName: "b.example.com"}),
	}, V4: true, V6: true}, f)
	name := must.Pattern("a.example.com")
	txs, _ := Plan(Render(Input{Frozen: []string{"ns1"}, V4: true, V6: true}, f), d.rows, f)
	d.apply(txs)
	frozen := Input{Frozen: []string{"ns1"}, Names: []enforce.Pattern{name},
		Learned: map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.1", "2001:db8::1")}, V4: true, V6: true}
	txs, _ = Plan(Render(frozen, f), d.rows, f)
	d.apply(txs)
	learned, kept := d.rows.Addresses()
	if len(learned[name]) != 2 || len(kept) != 0 {
		t.Errorf("learned %v, kept %v", learned, kept)
	}
	if len(d.rows.ACLs) != 4 || len(d.rows.Sets) != 4 || len(d.rows.Groups) != 1 {
		t.Errorf("%d ACLs, %d sets, %d groups", len(d.rows.ACLs), len(d.rows.Sets), len(d.rows.Groups))
	}
}

// TestPlanSplits checks the change from the rows of OVN-Kubernetes in one transaction per firewall, and back, with none
// of our rows left.
func TestPlanSplits(t *testing.T) {
	name := must.Pattern("a.example.com")
	w := Input{Firewalls: []enforce.Firewall{firewall(t, "ns1",
		enforce.RuleInput{Type: "Allow", DNSName: "a.example.com"})}, V4: true, V6: true,
		Learned: map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.1")},
		Kept:    map[enforce.Pattern][]netip.Addr{name: addrs("192.0.2.2")}}
	stock, split, kept := Features{ManageGroups: true, Stock: true}, Features{ManageGroups: true},
		Features{ManageGroups: true, Keep: true}
	d := rig(t, w, stock)
	for _, f := range []Features{split, stock, kept, stock} {
		txs, _ := Plan(Render(w, f), d.rows, f)
		if n := len(slices.DeleteFunc(slices.Clone(txs), func(tx Tx) bool { return tx.Namespace != "ns1" })); n != 1 {
			t.Fatalf("%d steps of the firewall: %+v", n, txs)
		}
		d.apply(txs)
		if diff := cmp.Diff(Render(w, f), wanted(d.rows), unordered); diff != "" {
			t.Errorf("%+v (-want +got)\n%s", f, diff)
		}
	}
}

// TestPlanDuplicates checks that of two ACLs with the same id the attached one is kept.
func TestPlanDuplicates(t *testing.T) {
	f := Features{ManageGroups: true}
	w := denies(t, 1)
	d := rig(t, w, f)
	twin := d.rows.ACLs[0]
	twin.UUID = "twin"
	d.rows.ACLs = slices.Insert(d.rows.ACLs, 0, twin)
	d.rows.Groups = append(d.rows.Groups, PortGroup{UUID: "other", Name: "other", ACLs: []string{"twin"}})
	txs, _ := Plan(Render(w, f), d.rows, f)
	want := []Tx{{Ops: []Op{{Verb: Remove, Table: groupTable, Row: "other", Column: "acls", Values: []string{"twin"}}}}}
	if diff := cmp.Diff(want, txs); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPlanColumns edits one column of an ACL at a time and checks that only that column is repaired.
func TestPlanColumns(t *testing.T) {
	f := Features{ManageGroups: true, Tier: true}
	edits := map[string]func(*ACL){
		"name":      func(a *ACL) { a.Name = "x" },
		"direction": func(a *ACL) { a.Direction = "from-lport" },
		"match":     func(a *ACL) { a.Match = "1" },
		"action":    func(a *ACL) { a.Action = "allow" },
		"severity":  func(a *ACL) { a.Severity = "alert" },
		"meter":     func(a *ACL) { a.Meter = "" },
		"priority":  func(a *ACL) { a.Priority++ },
		"tier":      func(a *ACL) { a.Tier = 0 },
		"label":     func(a *ACL) { a.Label = 1 },
		"log":       func(a *ACL) { a.Log = true },
		"options":   func(a *ACL) { a.Options = map[string]string{"x": "y"} },
		"external_ids": func(a *ACL) {
			a.IDs = maps.Clone(a.IDs)
			a.IDs["x"] = "y"
		},
	}
	if len(edits) != len((ACL{}).columns(f)) {
		t.Errorf("%d columns are edited, of %d", len(edits), len((ACL{}).columns(f)))
	}
	for column, edit := range edits {
		d := rig(t, denies(t, 1), f)
		edit(&d.rows.ACLs[0])
		txs, _ := Plan(Render(denies(t, 1), f), d.rows, f)
		if len(txs) != 1 || len(txs[0].Ops) != 1 ||
			!slices.Equal(slices.Collect(maps.Keys(txs[0].Ops[0].Columns)), []string{column}) {
			t.Errorf("%s: %+v", column, txs)
		}
	}
}
