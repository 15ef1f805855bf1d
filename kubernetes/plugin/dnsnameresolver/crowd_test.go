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

// crowd is a wildcard that more names were learned of than its status has room for.
type crowd struct {
	*object
	rules learn.Rules
	now   time.Time
	names int
}

func newCrowd(names int) *crowd {
	live := &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Name: "w", UID: "w", ResourceVersion: "1"}, Spec: v1alpha1.DNSNameResolverSpec{Name: "*.example.com."}}
	c := &crowd{object: newObject(live, must.Pattern("*.example.com."), "a", 0), now: time.Now(),
		rules: learn.Rules{MinTTL: 5 * time.Second, Threshold: 5, Lease: time.Minute, MaxNames: 1000, MaxBytes: 208 << 10}}
	for range names {
		c.learn()
	}
	c.write()
	return c
}

func (c *crowd) learn() {
	c.names++
	a := netip.AddrFrom4([4]byte{198, 51, byte(c.names >> 8), byte(c.names)})
	c.note(c.rules, learn.Observation{Name: fmt.Sprintf("n%d.example.com.", c.names), Type: dns.TypeA, Addrs: []learn.Address{{Addr: a, TTL: time.Minute}}}, c.now)
}

// write is what one write does while questions wait.
func (c *crowd) write() {
	w := c.begin(c.rules, c.now)
	if len(w.ops) == 0 {
		return
	}
	got := c.live.DeepCopy()
	got.Status.ResolvedNames = toStatusList(c.live, w.want)
	c.done(w, got, c.rules, c.now)
}

// turn is half a second of its life: five new names, and one write.
func (c *crowd) turn() {
	for range 5 {
		c.learn()
	}
	c.now = c.now.Add(500 * time.Millisecond)
	c.write()
}

// BenchmarkCrowd is a wildcard whose status is full, as questions meet it: they wait while a write is made ready or its result is taken.
func BenchmarkCrowd(b *testing.B) {
	c := newCrowd(1000)
	for range 200 {
		c.turn()
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
			c.turn()
		}
	})
	b.Logf("%d entries, %d in the first, %d names known", len(c.entries), len(c.entries[0].Addrs), len(c.object.names))
}
