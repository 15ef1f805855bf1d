package iterate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// noted reports whether a trace has a note of a kind.
func noted(trace *iterate.Trace, kind string) bool {
	return slices.ContainsFunc(trace.Notes, func(n iterate.Note) bool { return n.Kind == kind })
}

// TestLongChain has chains of 16 and 17 aliases. 17 is one more than a walk follows.
func TestLongChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for aliases, long := range map[int]bool{16: false, 17: true} {
			var script strings.Builder
			for i := range aliases {
				fmt.Fprintf(&script, "c%d.example.test. 60 CNAME c%d.example.test.\n", i, i+1)
			}
			fmt.Fprintf(&script, "c%d.example.test. 60 A 203.0.113.8", aliases)
			net := internet(map[string]string{"192.0.2.21": script.String(), "192.0.2.22": script.String()})
			trace := walk(t, net, "c0.example.test. A", iterate.Options{})
			if noted(trace, iterate.NoteAliasLong) != long || (trace.Result == iterate.Answer) == long {
				t.Errorf("%d aliases: %s, notes %v", aliases, trace.Result, trace.Notes)
			}
		}
	})
}

// TestDepth has zones below each other, each on its own server.
func TestDepth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for zones, deep := range map[int]bool{25: false, 40: true} {
			more := map[string]string{}
			zone, above := "example.test.", []string{"192.0.2.21", "192.0.2.22"}
			for i := range zones {
				child, at := "z."+zone, fmt.Sprintf("192.0.2.%d", 41+i)
				cut := fmt.Sprintf("%s 60 NS ns.%s\nns.%s 60 A %s\n", child, child, child, at)
				for _, server := range above {
					more[server] += cut
				}
				more[at] = "zone " + child + "\n" + cut
				zone, above = child, []string{at}
			}
			more[above[0]] += "www." + zone + " 60 A 203.0.113.8\n"
			trace := walk(t, internet(more), "www."+zone+" A", iterate.Options{Budget: resolve.NewBudget(2000, 1000, nil)})
			if noted(trace, iterate.NoteDepth) != deep || slices.Contains(trace.Unfinished, "depth") != deep ||
				(trace.Result == iterate.Answer) == deep {
				t.Errorf("%d zones: %s, unfinished %v, notes %v", zones, trace.Result, trace.Unfinished, trace.Notes)
			}
		}
	})
}

// TestLookups has two zones with twelve servers each whose addresses must be looked up. That exceeds the limit of a
// walk.
func TestLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for zones, many := range map[int]bool{1: false, 2: true} {
			var tld strings.Builder
			leaf := "alias.example.test. 60 CNAME www.other.test."
			for i, zone := range []string{"example.test.", "other.test."}[:zones] {
				hosts := []string{[]string{"ns1.example.test.", "ns.other.test."}[i]}
				for n := range 12 {
					hosts = append(hosts, fmt.Sprintf("x%d%c.far.test.", n, 'a'+i))
				}
				fmt.Fprintf(&tld, "set %s 60 NS %s\n", zone, strings.Join(hosts, ", "))
			}
			net := internet(map[string]string{"192.0.2.11": tld.String(), "192.0.2.12": tld.String(), "192.0.2.21": leaf,
				"192.0.2.22": leaf})
			trace := walk(t, net, "alias.example.test. A", iterate.Options{Budget: resolve.NewBudget(400, 1000, nil)})
			if slices.Contains(trace.Unfinished, "lookups of servers") != many || trace.Result != iterate.Answer {
				t.Errorf("%d zones: %s, unfinished %v", zones, trace.Result, trace.Unfinished)
			}
		}
	})
}
