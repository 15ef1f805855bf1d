package resolver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
)

var noon = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// object parses an object from a line: its name, then names with addresses and the end of their TTL, in seconds from
// noon: "*.example.net. a.example.net.=192.0.2.1@-7,192.0.2.2@3".
func object(line string) *v1alpha1.DNSNameResolver {
	fields := strings.Fields(line)
	r := &v1alpha1.DNSNameResolver{Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(fields[0])}}
	for _, f := range fields[1:] {
		name, addrs, _ := strings.Cut(f, "=")
		n := v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(name)}
		for a := range strings.SplitSeq(addrs, ",") {
			ip, end, _ := strings.Cut(a, "@")
			if ip == "" {
				continue
			}
			d, err := time.ParseDuration(end + "s")
			if err != nil {
				panic(err)
			}
			last := metav1.NewTime(noon.Add(d - 10*time.Second))
			n.ResolvedAddresses = append(n.ResolvedAddresses,
				v1alpha1.DNSNameResolverResolvedAddress{IP: ip, TTLSeconds: 10, LastLookupTime: &last})
		}
		r.Status.ResolvedNames = append(r.Status.ResolvedNames, n)
	}
	return r
}

func TestExpired(t *testing.T) {
	for _, tc := range []struct {
		name, object string
		keep         bool
		stays        string // an address that stays
		removed      string // paths, in the order of removal
		gone         int
		ended        string
		next         time.Duration // after noon; 0 means never
	}{
		{name: "nothing there", object: "www.example.net."},
		{name: "fresh", object: "www.example.net. www.example.net.=192.0.2.1@3,192.0.2.2@9", next: 3 * time.Second},
		{name: "in its grace it is asked for", object: "www.example.net. www.example.net.=192.0.2.1@0,192.0.2.2@9",
			ended: "www.example.net.", next: 5 * time.Second},
		{name: "over", object: "www.example.net. www.example.net.=192.0.2.1@-5,192.0.2.2@9,192.0.2.3@-60",
			removed: "0/resolvedAddresses/2 0/resolvedAddresses/0", gone: 2, next: 9 * time.Second},
		{name: "a name keeps its entry", object: "www.example.net. www.example.net.=192.0.2.1@-5",
			removed: "0/resolvedAddresses/0", gone: 1},
		{name: "a name of a wildcard goes",
			object: "*.example.net. a.example.net.=192.0.2.1@-5 b.example.net.=192.0.2.2@9 " +
				"c.example.net.=192.0.2.3@-9,192.0.2.4@-9",
			removed: "2 0", gone: 3, next: 9 * time.Second},
		{name: "a name of a deep wildcard, too", object: "**.example.net. a.b.example.net.=192.0.2.1@-5", removed: "0",
			gone: 1},
		{name: "and one without addresses", object: "*.example.net. a.example.net.= b.example.net.=192.0.2.2@9", removed: "0",
			next: 9 * time.Second},
		{name: "nothing goes in the dark", object: "*.example.net. a.example.net.=192.0.2.1@-50 b.example.net.=", keep: true,
			ended: "a.example.net.", next: grace},
		{name: "what was heard ourselves stays", object: "*.example.net. a.example.net.=192.0.2.1@-50,192.0.2.2@-50",
			stays:   "192.0.2.2",
			removed: "0/resolvedAddresses/0", gone: 1, ended: "a.example.net.", next: recheckAfter},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := expired(object(tc.object), noon, tc.keep,
				func(_ v1alpha1.DNSName, ip string, _ time.Time) bool { return ip == tc.stays })
			var removed []string
			tests := 0
			for _, o := range l.patch {
				switch o.Op {
				case "test":
					tests++
				case "remove":
					removed = append(removed, strings.TrimPrefix(o.Path, "/status/resolvedNames/"))
				}
			}
			next := time.Duration(0)
			if !l.next.IsZero() {
				next = l.next.Sub(noon)
			}
			got := []any{strings.Join(removed, " "), l.gone, strings.Join(l.ended, " "), next}
			if diff := cmp.Diff([]any{tc.removed, tc.gone, tc.ended, tc.next}, got); diff != "" {
				t.Error(diff)
			}
			if len(removed) > 0 && tests <= len(removed) {
				t.Errorf("%d tests before %d removals", tests, len(removed))
			}
		})
	}
}

func nothing(v1alpha1.DNSName, string, time.Time) bool { return false }

// TestExpiredWithoutTime has an address without a time. The schema forbids it, but the writer of the status may not
// know.
func TestExpiredWithoutTime(t *testing.T) {
	r := object("www.example.net. www.example.net.=192.0.2.1@3")
	r.Status.ResolvedNames[0].ResolvedAddresses[0].LastLookupTime = nil
	if l := expired(r, noon, false, nothing); l.gone != 1 {
		t.Errorf("%d addresses are over, want 1", l.gone)
	}
}

// TestExpiredMany has more to remove than a patch may have operations, for one name and for many. A part is removed,
// and that change causes the next reconciliation.
func TestExpiredMany(t *testing.T) {
	for _, tc := range []struct {
		object string
		names  int
		each   int
	}{
		{"www.example.net.", 1, 6000}, {"*.example.net.", 4000, 1}, {"*.example.net.", 70, 101},
	} {
		r := object(tc.object)
		over, fresh := metav1.NewTime(noon.Add(-time.Hour)), metav1.NewTime(noon)
		for i := range tc.names {
			n := v1alpha1.DNSNameResolverResolvedName{DNSName: v1alpha1.DNSName(fmt.Sprintf("n%d.example.net.", i))}
			for k := range tc.each {
				a := v1alpha1.DNSNameResolverResolvedAddress{IP: fmt.Sprintf("2001:db8::%x", k), TTLSeconds: 10,
					LastLookupTime: &over}
				if k == 100 && tc.names > 1 { // so that the name itself remains
					a.LastLookupTime = &fresh
				}
				n.ResolvedAddresses = append(n.ResolvedAddresses, a)
			}
			r.Status.ResolvedNames = append(r.Status.ResolvedNames, n)
		}
		l := expired(r, noon, false, nothing)
		if len(l.patch) > fetch.MaxOperations || len(l.patch) < fetch.MaxOperations-10 || l.gone < fetch.MaxOperations/4 {
			t.Errorf("%s: %d operations for %d addresses", tc.object, len(l.patch), l.gone)
		}
	}
}
