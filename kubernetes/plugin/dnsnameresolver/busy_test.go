package dnsnameresolver

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// TestObjectsComeAndGo queries names while the watch reports changes. The stock plugin reads its maps without their
// lock, which ends the process. The race detector would find that here.
func TestObjectsComeAndGo(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	object := func(i int) *v1alpha1.DNSNameResolver {
		id := fmt.Sprint("busy-", i%50)
		return &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: "egress", Name: id, UID: types.UID(id)},
			Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName(fmt.Sprintf("*.zone%d.example.org.", i%50))}}
	}
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	stop := make(chan struct{})
	var watch, ask sync.WaitGroup
	watch.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				r.plugin.engine.OnAdd(object(i), false)
				r.plugin.engine.OnDelete(object(i + 25))
				runtime.Gosched()
			}
		}
	})
	for range 4 {
		ask.Go(func() {
			for i := range 200 {
				if m := r.ask(r.plugin, "a.example.com. A"); m == nil || len(m.Answer) != 1 {
					t.Errorf("reply is %v", m)
				}
				r.ask(r.plugin, fmt.Sprintf("n%d.zone%d.example.org. A", i, i%50))
			}
		})
	}
	ask.Wait()
	close(stop)
	watch.Wait()
	r.want(name, "a.example.com. 192.0.2.1"+ok)
}

// TestDeletedAreForgotten checks that the addresses of deleted objects are kept for objects that replace them, but not
// more addresses than one object may have.
func TestDeletedAreForgotten(t *testing.T) {
	r := newRig(t, nil)
	e := r.plugin.engine
	now := e.store.clock.now()
	object := func(i int) *v1alpha1.DNSNameResolver {
		id := fmt.Sprint("o", i)
		return &v1alpha1.DNSNameResolver{ObjectMeta: metav1.ObjectMeta{Namespace: "egress", Name: id, UID: types.UID(id)},
			Spec: v1alpha1.DNSNameResolverSpec{Name: v1alpha1.DNSName("*." + id + ".example.org.")}}
	}
	for i := range 30 {
		live := object(i)
		e.OnAdd(live, false)
		e.mu.Lock()
		o := e.objects[types.NamespacedName{Namespace: "egress", Name: live.Name}]
		e.mu.Unlock()
		ttl := time.Hour
		if i == 29 {
			ttl = time.Second
		}
		for n := range 2 {
			l := learn.Observation{Name: fmt.Sprintf("n%d.o%d.example.org.", n, i), Type: dns.TypeA}
			for k := range 4000 {
				l.Addrs = append(l.Addrs, learn.Address{Addr: netip.AddrFrom4([4]byte{198, byte(i), byte(k >> 8), byte(k)}),
					TTL: ttl})
			}
			o.note(e.rules, l, now)
		}
		e.OnDelete(live)
		o.setDeletedAt(time.Now().Add(time.Duration(i-60) * time.Minute))
	}
	e.store.clock.offset.Add(int64(time.Minute))
	e.rebuild()
	e.mu.Lock()
	defer e.mu.Unlock()
	known := 0
	for at, o := range e.deleted {
		known += o.known
		if i := o.key.Name; i == "o29" || i < "o2" {
			t.Errorf("%v is remembered", at)
		}
	}
	if known > maxKnown || known < maxKnown-9000 {
		t.Errorf("%d addresses of %d objects are remembered", known, len(e.deleted))
	}
}
