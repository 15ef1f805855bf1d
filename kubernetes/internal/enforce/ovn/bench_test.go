package ovn

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-kubernetes/libovsdb/model"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// BenchmarkPass renders a large input and compares it with a database that has the same rows, as nearly every pass
// does.
func BenchmarkPass(b *testing.B) {
	w := Input{Learned: map[enforce.Pattern][]netip.Addr{}, V4: true, ClusterSubnets: prefixes("10.128.0.0/14")}
	var in []enforce.RuleInput
	for i := range 1000 {
		name := fmt.Sprintf("n%d.example.com", i)
		in = append(in, enforce.RuleInput{Type: "Allow", DNSName: name})
		for j := range 10 {
			w.Learned[must.Pattern(name)] = append(w.Learned[must.Pattern(name)],
				netip.AddrFrom4([4]byte{198, 18, byte(i), byte(j)}))
		}
	}
	in = append(in, enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"})
	w.Firewalls = []enforce.Firewall{firewall(b, "ns1", in...)}
	f := Features{ManageGroups: true, Keep: true}
	have := Render(w, f)
	for i := range have.ACLs {
		have.ACLs[i].UUID = have.ACLs[i].id()
	}
	for b.Loop() {
		if txs, _ := Plan(Render(w, f), have, f); len(txs) > 0 {
			b.Fatalf("%d transactions", len(txs))
		}
	}
}

// BenchmarkClone copies a set of a thousand addresses. libovsdb does that several times for each added address, through
// JSON unless CloneModel exists.
func BenchmarkClone(b *testing.B) {
	row := &setRow{Name: "set", ExternalIDs: map[string]string{"k8s.ovn.org/name": "*.example.com."}}
	for i := range 1000 {
		row.Addresses = append(row.Addresses, netip.AddrFrom4([4]byte{198, 18, byte(i >> 8), byte(i)}).String())
	}
	type helpless setRow
	other := helpless(*row)
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			model.Clone(row)
		}
	})
	b.Run("json", func(b *testing.B) {
		for b.Loop() {
			model.Clone(&other)
		}
	})
}
