package dnsnameresolver

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

var extendStart = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// entryOf returns an entry whose addresses end the given numbers of seconds after extendStart.
func entryOf(name string, failures int32, ends ...int32) learn.Entry {
	e := learn.Entry{Name: name, Failures: failures}
	for i, ttl := range ends {
		e.Addrs = append(e.Addrs, learn.StoredAddress{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}), TTL: ttl,
			Last: extendStart})
	}
	return e
}

func objectOf(entries ...learn.Entry) *v1alpha1.DNSNameResolver {
	o := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{UID: "one", ResourceVersion: "7"}}
	o.Status.ResolvedNames = toStatusList(o, entries)
	return o
}

// TestExtend checks two replicas that write the same object at once. If both only extend addresses or add different
// ones, both succeed. If one removes something, or they disagree about a name, the second one is rejected.
func TestExtend(t *testing.T) {
	const a, b = "a.example.com.", "b.example.com."
	for _, tc := range []struct {
		name          string
		have          []learn.Entry
		first, second []learn.Entry
		want          []learn.Entry // nil: the second write is rejected
	}{
		{"both extend", []learn.Entry{entryOf(a, 0, 5)}, []learn.Entry{entryOf(a, 0, 75)}, []learn.Entry{entryOf(a, 0, 74)},
			[]learn.Entry{entryOf(a, 0, 74)}},
		{"each extends another address", []learn.Entry{entryOf(a, 0, 5, 5)}, []learn.Entry{entryOf(a, 0, 75, 5)},
			[]learn.Entry{entryOf(a, 0, 5, 75)},
			[]learn.Entry{entryOf(a, 0, 75, 75)}},
		{"one extends, one adds", []learn.Entry{entryOf(a, 0, 5)}, []learn.Entry{entryOf(a, 0, 75)},
			[]learn.Entry{entryOf(a, 0, 5, 5)},
			[]learn.Entry{entryOf(a, 0, 75, 5)}},
		{"one extends, one adds a name", []learn.Entry{entryOf(a, 0, 5)}, []learn.Entry{entryOf(a, 0, 5), entryOf(b, 0, 5)},
			[]learn.Entry{entryOf(a, 0, 75)},
			[]learn.Entry{entryOf(a, 0, 75), entryOf(b, 0, 5)}},
		{"one extends, one shortens", []learn.Entry{entryOf(a, 0, 75)}, []learn.Entry{entryOf(a, 0, 90)},
			[]learn.Entry{entryOf(a, 0, 5)}, nil},
		{"one extends, one counts a failure", []learn.Entry{entryOf(a, 0, 5)}, []learn.Entry{entryOf(a, 0, 75)},
			[]learn.Entry{entryOf(a, 1, 5)}, nil},
		{"one removes the name, one extends it", []learn.Entry{entryOf(a, 0, 5), entryOf(b, 0, 5)},
			[]learn.Entry{entryOf(b, 0, 5)},
			[]learn.Entry{entryOf(a, 0, 75), entryOf(b, 0, 5)}, nil},
	} {
		live := objectOf(tc.have...)
		body, err := json.Marshal(live)
		if err != nil {
			t.Fatal(err)
		}
		body, err = apply(body, diff(live, tc.have, tc.first))
		if err != nil {
			t.Fatalf("%s: the first: %v", tc.name, err)
		}
		body, err = apply(body, diff(live, tc.have, tc.second))
		if (err == nil) != (tc.want != nil) {
			t.Errorf("%s: the second: %v", tc.name, err)
		}
		if err != nil || tc.want == nil {
			continue
		}
		var got v1alpha1.DNSNameResolver
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, fromStatus(got.Status),
			cmp.Comparer(func(x, y netip.Addr) bool { return x == y })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func apply(body []byte, ops []operation) ([]byte, error) {
	text, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	p, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	return p.Apply(body)
}

// TestTakenAway checks that an address that another client removed from the status is written again without another
// query, if clients may use it.
func TestTakenAway(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("a.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 60 IN A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1 Degraded=False/NOERROR")
	r.api.edit(name, func(o *v1alpha1.DNSNameResolver) { o.Status.ResolvedNames[0].ResolvedAddresses = nil })
	r.want(name, "a.example.com. 192.0.2.1 Degraded=False/NOERROR")
	r.api.edit(name, func(o *v1alpha1.DNSNameResolver) { o.Status.ResolvedNames = nil })
	r.want(name, "a.example.com. 192.0.2.1 Degraded=False/NOERROR")
}

// TestFirstAtOnce checks that two replicas that write the first status of a name at once both succeed, and nothing is
// lost.
func TestFirstAtOnce(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("a.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 60 IN A 192.0.2.1")
	r.api.set(func() {
		r.api.between = func() { r.api.editLocked(name, stored("a.example.com.", "192.0.2.9")) }
	})
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.9 192.0.2.1 Degraded=False/NOERROR")
	if _, refusals := r.api.counts(); refusals > 0 {
		t.Errorf("%d writes were refused", refusals)
	}
}

// TestManyOperations checks that a change with more operations than the API server accepts replaces the whole list.
func TestManyOperations(t *testing.T) {
	rules := learn.Rules{MinTTL: 5 * time.Second, Threshold: 5}
	for _, names := range []int{10, 60} {
		var entries []learn.Entry
		for i := range names {
			e := entryOf(fmt.Sprintf("n%d.example.com.", i), 0, slices.Repeat([]int32{1}, 100)...)
			e.Degraded = learn.Condition{Reason: "NOERROR", Message: "No Error", Since: extendStart}
			entries = append(entries, e)
		}
		o := newObject(objectOf(entries...), must.Pattern("*.example.com"), "replica", 1)
		for _, e := range entries {
			l := learn.Observation{Name: e.Name, Type: dns.TypeA}
			for _, h := range e.Addrs {
				l.Addrs = append(l.Addrs, learn.Address{Addr: h.Addr, TTL: time.Hour})
			}
			o.note(rules, l, extendStart.Add(3*time.Second))
		}
		w := o.begin(rules, extendStart.Add(5*time.Second)) // when this replica is due
		if many := names > 50; len(w.ops) > fetch.MaxOperations || (len(w.ops) == 2) != many {
			t.Errorf("%d names: %d operations", names, len(w.ops))
		}
	}
}
