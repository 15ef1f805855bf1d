package resolver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/nameplane/nameplane/internal/rr"
)

// TestLongTTL checks that a name with a TTL of a week is queried every half hour, so that a change is seen soon.
func TestLongTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimulation(t, "www.example.net.",
			"zone example.net.\nwww.example.net. 604800 A 203.0.113.1\nat 100m set www.example.net. 604800 A 203.0.113.2")
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Hour)
		defer cancel()
		ended := make(chan struct{})
		go func() { defer close(ended); w.r.tracker.Run(ctx) }()
		for ctx.Err() == nil {
			if _, err := w.r.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second)
		}
		<-ended
		time.Sleep(askTimeout)
		asked := 0
		for _, q := range w.net.History() {
			if q.Type == rr.TypeA {
				asked++
			}
		}
		if asked < 8 || asked > 12 {
			t.Errorf("asked %d times in four hours", asked)
		}
		if !w.has("203.0.113.1") || !w.has("203.0.113.2") {
			t.Errorf("the status is %+v: the first is good for a week, the second was seen", w.object().Status)
		}
	})
}
