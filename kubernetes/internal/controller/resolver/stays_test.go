package resolver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
)

// silence makes the plugin deaf for some time.
func (w *simulation) silence(from, to time.Duration) {
	say := func(deaf bool) func() {
		return func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.deaf = deaf
		}
	}
	time.AfterFunc(from, say(true))
	time.AfterFunc(to, say(false))
}

// TestPluginIsSlow has a plugin that writes nothing for a minute. Addresses in answers that the controller sees stay
// meanwhile. Those that are no longer in answers are removed as usual.
func TestPluginIsSlow(t *testing.T) {
	const script = "zone example.net.\nwww.example.net. 4 A 203.0.113.1\n"
	for _, tc := range []struct {
		name, script string
		least, most  time.Duration
	}{
		{"still there", script, 5*time.Minute - time.Second, 5 * time.Minute},
		{"another address", script + "at 90s set www.example.net. 4 A 203.0.113.2", 90 * time.Second, 90*time.Second +
			4*time.Second + grace + recheckAfter + time.Second},
		{"no such name", script + "at 90s drop www.example.net.", 90 * time.Second, 90*time.Second + 4*time.Second + grace +
			recheckAfter + time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSimulation(t, "www.example.net.", tc.script)
				w.silence(time.Minute, 2*time.Minute)
				_, last, gaps := w.lasted(5*time.Minute, "203.0.113.1")
				if last < tc.least || last > tc.most || gaps > 0 {
					t.Errorf("the address was there until %v, with %d gaps; want until %v to %v", last, gaps, tc.least, tc.most)
				}
			})
		})
	}
}

// TestUnanswered has a name whose servers fail for a while: its addresses stay for a limited time.
func TestUnanswered(t *testing.T) {
	const script = "zone example.net.\nwww.example.net. 4 A 203.0.113.1\nat 1m fault servfail www.example.net.\n"
	for _, tc := range []struct {
		name, script string
		least, most  time.Duration
	}{
		{"for a moment", script + "at 70s heal", 3*time.Minute - time.Second, 3 * time.Minute},
		{"for ever", script, time.Minute + unsure - 4*time.Second, time.Minute + 4*time.Second + unsure + recheckAfter +
			time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newSimulation(t, "www.example.net.", tc.script)
				_, last, gaps := w.lasted(3*time.Minute, "203.0.113.1")
				if last < tc.least || last > tc.most || gaps > 0 {
					t.Errorf("the address was there until %v, with %d gaps; want until %v to %v", last, gaps, tc.least, tc.most)
				}
			})
		})
	}
}

// TestHangingWrite checks that a removal without a reply ends with an error, so that it is retried.
func TestHangingWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, "*.example.net.", "zone example.net.\n")
		w.r.client = interceptor.NewClient(w.r.client.(client.WithWatch), interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ client.Patch,
				_ ...client.SubResourcePatchOption) error {
				<-ctx.Done()
				return ctx.Err()
			},
		})
		obj := w.object()
		obj.Status.ResolvedNames = []v1alpha1.DNSNameResolverResolvedName{{DNSName: "a.example.net."}}
		began := time.Now()
		if _, err := w.r.remove(t.Context(), obj, expired(obj, began, false, nil)); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("the removal ended with %v", err)
		}
		if took := time.Since(began); took != writeTimeout {
			t.Errorf("the removal took %v", took)
		}
	})
}
