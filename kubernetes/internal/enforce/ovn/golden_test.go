package ovn

import (
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenInput has a rule of every kind, in the namespace of TestRenderGolden.
func goldenInput(t *testing.T, v4, v6 bool) Input {
	fw := firewall(t, "default",
		enforce.RuleInput{Type: "Allow", DNSName: "WWW.example.com"},
		enforce.RuleInput{Type: "Allow", DNSName: "*.example.com.",
			Ports: []enforce.PortInput{{Protocol: "TCP", Port: 80}, {Protocol: "UDP", Port: 443}, {Protocol: "TCP", Port: 443}}},
		enforce.RuleInput{Type: "Deny", DNSName: "bad.example.com"},
		enforce.RuleInput{Type: "Allow", CIDR: "1.2.3.0/24", Ports: []enforce.PortInput{{Protocol: "UDP", Port: 55}}},
		enforce.RuleInput{Type: "Allow", HasNodeSelector: true},
		enforce.RuleInput{Type: "Deny", HasNodeSelector: true},
		enforce.RuleInput{Type: "Deny", CIDR: "0.0.0.0/0"},
		enforce.RuleInput{Type: "Deny", CIDR: "::/0"},
	)
	fw.Rules[4].Nodes = addrs("198.51.100.2", "198.51.100.1", "2001:db8:1::1") // the next rule selects no node
	return Input{
		Firewalls: []enforce.Firewall{fw},
		Learned: map[enforce.Pattern][]netip.Addr{
			must.Pattern("www.example.com"): addrs("192.0.2.2", "192.0.2.1", "10.244.7.7", "2001:db8::1"),
			must.Pattern("*.example.com"):   addrs("192.0.2.3"),
		},
		Kept:           map[enforce.Pattern][]netip.Addr{must.Pattern("www.example.com"): addrs("192.0.2.9")},
		Ports:          map[string][]string{"default": {"port-of-a-pod"}},
		Logging:        map[string]Logging{"default": {Allow: "info", Deny: "alert"}},
		ClusterSubnets: prefixes("10.244.0.0/16", "fd00:10:244::/48"),
		V4:             v4, V6: v6,
	}
}

// TestGolden compares the rows in an empty database with files: those of OVN-Kubernetes, with the flags that produce
// them, and ours. The stock files were once derived from the code of OVN-Kubernetes. A change of a stock file therefore
// changes rows that OVN-Kubernetes reads.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		file   string
		f      Features
		v4, v6 bool
	}{
		{"stock-ipv4", Features{Tier: true, Stock: true}, true, false},
		{"stock-ipv6", Features{Tier: true, Stock: true}, false, true},
		// --stock-acls --keep-established=0
		{"stock-dual", Features{Tier: true, Stock: true}, true, true},
		{"stock-dual-without-tiers", Features{Stock: true}, true, true}, // the same before OVN 23.06
		// --keep-established=0
		{"ours-ipv4", Features{Tier: true, ManageGroups: true, Guard: true}, true, false},
		// --keep-established=0
		{"ours-dual", Features{Tier: true, ManageGroups: true, Guard: true}, true, true},
		{"ours-dual-kept", Features{Tier: true, ManageGroups: true, Keep: true, Guard: true}, true, true}, // without flags
	} {
		have := Rows{}
		if !tt.f.ManageGroups { // the group already exists
			have.Groups = []PortGroup{{UUID: "group-of-default", Name: groupName("default"), IDs: groupIDs("default")}}
		}
		txs, waiting := Plan(Render(goldenInput(t, tt.v4, tt.v6), tt.f), have, tt.f)
		if len(waiting) > 0 {
			t.Fatalf("waits for %v", waiting)
		}
		path, got := filepath.Join("testdata", tt.file+".txt"), dump(txs)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatalf("%v; go test -update writes it", err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", path, diff)
		}
	}
}

// dump writes one line for each column of each row.
func dump(txs []Tx) string {
	var b strings.Builder
	for i, tx := range txs {
		fmt.Fprintf(&b, "transaction %d\n", i+1)
		for _, op := range tx.Ops {
			fmt.Fprintf(&b, "\n%s %s %s\n",
				[...]string{Insert: "insert", Update: "update", Delete: "delete", Add: "add to", Remove: "remove from"}[op.Verb],
				op.Table, op.Row)
			for _, column := range slices.Sorted(maps.Keys(op.Columns)) {
				fmt.Fprintf(&b, "  %-12s %v\n", column, op.Columns[column])
			}
			if op.Column != "" {
				fmt.Fprintf(&b, "  %-12s %v\n", op.Column, op.Values)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
