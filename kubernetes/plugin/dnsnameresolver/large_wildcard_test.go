package dnsnameresolver

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/test/must"
)

// largeWildcard is a wildcard with more names than its status has room for.
type largeWildcard struct {
	*object
	rules learn.Rules
	now   time.Time
	names int
}

func newLargeWildcard(names int) *largeWildcard {
	live := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "w", ResourceVersion: "1"},
		Spec: v1alpha1.DNSNameResolverSpec{Name: "*.example.com."}}
	c := &largeWildcard{object: newObject(live, must.Pattern("*.example.com."), "a", 0), now: time.Now(),
		rules: learn.Rules{MinTTL: 5 * time.Second, Threshold: 5, Lease: time.Minute, MaxNames: 1000, MaxBytes: 208 << 10}}
	for range names {
		c.learn()
	}
	c.write()
	return c
}

func (c *largeWildcard) learn() {
	c.names++
	a := netip.AddrFrom4([4]byte{198, 51, byte(c.names >> 8), byte(c.names)})
	c.note(c.rules, learn.Observation{Name: fmt.Sprintf("n%d.example.com.", c.names), Type: dns.TypeA,
		Addrs: []learn.Address{{Addr: a, TTL: time.Minute}}}, c.now)
}

// write performs the part of a write during which queries wait.
func (c *largeWildcard) write() {
	w := c.begin(c.rules, c.now)
	if len(w.ops) == 0 {
		return
	}
	got := c.live.DeepCopy()
	got.Status.ResolvedNames = toStatusList(c.live, w.want)
	c.done(w, got, c.rules, c.now)
}

// step simulates half a second: five new names and one write.
func (c *largeWildcard) step() {
	for range 5 {
		c.learn()
	}
	c.now = c.now.Add(500 * time.Millisecond)
	c.write()
}

// BenchmarkLargeWildcard measures a wildcard with a full status, as queries see it: they wait while a write is prepared
// or its result is processed.
func BenchmarkLargeWildcard(b *testing.B) {
	c := newLargeWildcard(1000)
	for range 200 {
		c.step()
	}
	b.Run("question", func(b *testing.B) {
		had := c.names
		for b.Loop() {
			c.names = had
			c.learn()
		}
	})
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			c.step()
		}
	})
	b.Logf("%d entries, %d in the first, %d names known", len(c.entries), len(c.entries[0].Addrs), len(c.object.names))
}
