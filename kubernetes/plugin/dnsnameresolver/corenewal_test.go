package dnsnameresolver

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// soloReplica is a single replica of a wildcard whose writes take no time.
type soloReplica struct {
	t      *testing.T
	o      *object
	rules  learn.Rules
	now    time.Time
	writes []time.Time
}

func newSoloReplica(t *testing.T) *soloReplica {
	t.Helper()
	p, err := enforce.ParsePattern("*.example.com.", enforce.PatternOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{UID: "one", ResourceVersion: "1"}}
	return &soloReplica{t: t, o: newObject(live, p, "r", 1), now: extendStart,
		rules: learn.Rules{MinTTL: 5 * time.Second, Threshold: 5, Lease: time.Minute}}
}

func (a *soloReplica) learn(i int, ttl time.Duration) {
	addr := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)})
	l := learn.Observation{Name: fmt.Sprintf("n%d.example.com.", i), Type: dns.TypeA,
		Addrs: []learn.Address{{Addr: addr, TTL: ttl}}}
	if gen, _ := a.o.note(a.rules, l, a.now); gen > 0 {
		a.write()
	}
}

func (a *soloReplica) write() {
	a.t.Helper()
	w := a.o.begin(a.rules, a.now)
	if w == nil || len(w.ops) == 0 {
		return
	}
	body, err := json.Marshal(w.live)
	if err == nil {
		body, err = apply(body, w.ops)
	}
	got := &v1alpha1.DNSNameResolver{}
	if err == nil {
		err = json.Unmarshal(body, got)
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.writes = append(a.writes, a.now)
	got.ResourceVersion = fmt.Sprint(len(a.writes) + 1)
	a.o.done(w, got, a.rules, a.now)
}

// TestCoRenewal checks that names of a wildcard that were learned one after the other are soon renewed together. Each
// write costs the API server the whole status, however few of its names change. No address ends meanwhile.
func TestCoRenewal(t *testing.T) {
	const names, ttl = 40, 30
	a := newSoloReplica(t)
	for second := range 600 {
		for i := range names {
			if second >= i && (second-i)%ttl == 0 {
				a.learn(i, ttl*time.Second)
			}
		}
		if due := a.o.nextDue(); !due.IsZero() && !due.After(a.now) {
			a.write()
		}
		for _, e := range a.o.entries {
			if over := a.now.Sub(e.Addrs[0].Until()); over > 0 {
				t.Fatalf("after %d s %s ended %v ago", second, e.Name, over)
			}
		}
		a.now = a.now.Add(time.Second)
	}
	if len(a.o.entries) != names {
		t.Errorf("%d names are stored, want %d", len(a.o.entries), names)
	}
	late := 0
	for _, at := range a.writes {
		if at.Sub(extendStart) >= 5*time.Minute {
			late++
		}
	}
	if late > 12 {
		t.Errorf("%d writes in the last five minutes, want at most one in 25 s", late)
	}
}
