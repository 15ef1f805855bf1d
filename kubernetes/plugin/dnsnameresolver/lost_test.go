package dnsnameresolver

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// TestFailureOfAll checks that a failure that several replicas see at once is counted once, whether they see each
// other's writes before or after their own.
func TestFailureOfAll(t *testing.T) {
	for _, delay := range []time.Duration{0, 60 * time.Millisecond} {
		r := newRig(t, nil)
		name := r.create("a.example.com.")
		replicas := []*Plugin{r.plugin}
		for range 4 {
			replicas = append(replicas, r.replica(nil))
		}
		all := func(status string) {
			t.Helper()
			var wg sync.WaitGroup
			for _, p := range replicas {
				r.known(p, "a.example.com.", true)
				wg.Go(func() { r.ask(p, "a.example.com. A") })
			}
			wg.Wait()
			r.want(name, status)
			for _, p := range replicas { // all pending changes are written
				eventually(t, "replicas to be done", func() bool { return p.engine.idle() })
			}
			r.want(name, status)
		}
		r.authority.set("a.example.com. A", "a.example.com. 5 A 192.0.2.1")
		all("a.example.com. 192.0.2.1" + ok)
		r.api.set(func() { r.api.delay = delay })
		r.authority.set("a.example.com. A", "SERVFAIL")
		for n := range 3 {
			r.wait(10*time.Second, replicas[1:]...)
			all(fmt.Sprintf("a.example.com. 192.0.2.1 failures=%d Degraded=True/SERVFAIL", n+1))
		}
	}
}

// idle reports whether nothing is to be written, or being written.
func (e *engine) idle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, o := range e.objects {
		o.mu.Lock()
		busy := o.writing
		for _, m := range o.names {
			busy = busy || m.dirty
		}
		o.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

// TestLostForGood checks occasional conflicts with clients that wrote the same: they are not consecutive rejections,
// and say nothing about names.
func TestLostForGood(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	want := "a.example.com. 192.0.2.1" + ok
	r.want(name, want)
	o := r.object(name)
	for i := range 6 {
		host := fmt.Sprintf("n%d.example.com.", i)
		r.authority.set(host+" A", host+" 300 A 192.0.2.2")
		other := v1alpha1.DNSNameResolverResolvedName{}
		r.api.set(func() {
			r.api.between = func() {
				r.api.editLocked(name, func(o *v1alpha1.DNSNameResolver) {
					other = *o.Status.ResolvedNames[0].DeepCopy()
					other.DNSName = v1alpha1.DNSName(host)
					other.ResolvedAddresses[0].IP = "192.0.2.2"
					o.Status.ResolvedNames = append(o.Status.ResolvedNames, other)
				})
			}
		})
		r.ask(r.plugin, host+" A")
		want += "; " + host + " 192.0.2.2" + ok
		r.want(name, want)
		eventually(t, "the replica to be done", r.plugin.engine.idle)
	}
	if _, refusals := r.api.counts(); refusals != 6 {
		t.Errorf("%d writes were refused, want 6", refusals)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refused != 0 || o.failed != 0 || o.hostnamesOnly {
		t.Errorf("%d refused in a row, %d failed, plain %v", o.refused, o.failed, o.hostnamesOnly)
	}
}

// TestLateFailure checks that a slow API server is left alone for as long as it took to fail or to report a conflict.
func TestLateFailure(t *testing.T) {
	r := newRig(t, nil)
	o := r.object(r.create("*.example.com."))
	const took = 8 * time.Second
	o.mu.Lock()
	o.names["a.example.com."] = &memory{dirty: true}
	o.mu.Unlock()
	if after := r.plugin.engine.failed(t.Context(), o, &write{live: o.live}, errors.New("no answer"),
		took); after < took/2 || after > took {
		t.Errorf("tried again after %v", after)
	}
	lost := apierrors.NewGenericServerResponse(422, "patch", schema.GroupResource{}, "", "test failed", 0, false)
	for took, least := range map[time.Duration]time.Duration{10 * time.Millisecond: 0, time.Second: time.Second / 2,
		took: time.Second} {
		o.mu.Lock()
		o.failed = 0
		o.mu.Unlock()
		if after := r.plugin.engine.failed(t.Context(), o, &write{live: o.live}, lost, took); after < least ||
			after > max(2*least, minRetry) {
			t.Errorf("after a race lost in %v tried again after %v", took, after)
		}
	}
}

// TestRestored checks an API server with an older state, because its database was restored. Addresses in use are
// written again, and so are later observations.
func TestRestored(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	learn := func(host string) {
		r.authority.set(host+".example.com. A", host+".example.com. 300 A 192.0.2.1")
		r.ask(r.plugin, host+".example.com. A")
	}
	learn("a")
	want := "a.example.com. 192.0.2.1" + ok
	r.want(name, want)
	saved := r.api.get(name)
	for _, host := range []string{"b", "c"} {
		learn(host)
		want += "; " + host + ".example.com. 192.0.2.1" + ok
		r.want(name, want)
	}
	r.api.set(func() {
		r.api.log, r.api.objects["egress/"+name] = nil, saved
		r.api.version, _ = strconv.Atoi(saved.ResourceVersion)
	})
	r.api.server.CloseClientConnections()
	r.want(name, want)
	learn("d")
	r.want(name, want+"; d.example.com. 192.0.2.1"+ok)
	eventually(t, "the newest version",
		func() bool { return r.object(name).newest().ResourceVersion == r.api.get(name).ResourceVersion })
}

// TestLastWrites checks that observations from just before the shutdown are written, unless the API server does not
// answer.
func TestLastWrites(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	o := r.object(name)
	o.delayWrites(time.Hour)
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	if err := r.plugin.engine.shutdown(); err != nil {
		t.Error(err)
	}
	if got := statusText(r.api.get(name)); got != "a.example.com. 192.0.2.1"+ok {
		t.Errorf("the status has %s", got)
	}

	second := r.replica(nil)
	r.known(second, "*.example.com.", true)
	r.authority.set("b.example.com. A", "b.example.com. 300 A 192.0.2.2")
	r.ask(second, "b.example.com. A")
	r.api.set(func() { r.api.down = true })
	if err := second.engine.shutdown(); err != nil {
		t.Error(err)
	}
}

// TestRacesInARow checks that a replica that loses many conflicts in a row still tests only what it changes.
// Otherwise it would conflict with every other write.
func TestRacesInARow(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	r.authority.set("a.example.com. A", "a.example.com. 300 A 192.0.2.1")
	r.ask(r.plugin, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	e, o := r.plugin.engine, r.object(name)
	eventually(t, "the replica to be done", e.idle)
	e.queue.ShutDown() // from here on the test writes
	e.writers.Wait()
	r.authority.set("b.example.com. A", "b.example.com. 300 A 192.0.2.2")
	r.ask(r.plugin, "b.example.com. A")
	for i := range 6 {
		r.api.set(func() {
			r.api.between = func() { r.api.editLocked(name, stored("b.example.com.", "192.0.2.9")) }
		})
		o.delayWrites(0)
		e.writeOne(t.Context(), o)
		if _, refusals := r.api.counts(); refusals != i+1 {
			t.Fatalf("%d writes were refused after %d attempts", refusals, i+1)
		}
		r.api.edit(name, func(o *v1alpha1.DNSNameResolver) { o.Status.ResolvedNames = o.Status.ResolvedNames[:1] })
		eventually(t, "the watch", func() bool { return o.newest().ResourceVersion == r.api.get(name).ResourceVersion })
	}
	r.api.set(func() {
		r.api.between = func() { r.api.editLocked(name, stored("c.example.com.", "192.0.2.3")) }
	})
	o.delayWrites(0)
	e.writeOne(t.Context(), o)
	r.want(name, "a.example.com. 192.0.2.1"+ok+"; b.example.com. 192.0.2.2"+ok+"; c.example.com. 192.0.2.3")
}
