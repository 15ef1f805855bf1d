package dnsnameresolver

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/nameplane/nameplane/api/v1alpha1"
)

// TestObjectsComeAndGo is D3: names are asked for while the watch tells of objects. The stock plugin reads its maps without their lock,
// which ends the process; the race detector would see it here.
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
