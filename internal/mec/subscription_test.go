package mec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

func noDelivery(context.Context, mec.Subscription, mec.Event) error {
	return errors.New("nobody is there")
}

// inbox is a callback that records its events, and fails for a given number of attempts.
type inbox struct {
	mu   sync.Mutex
	got  []string
	fail int
	at   []time.Time // the times of attempts
}

func (b *inbox) deliver(_ context.Context, sub mec.Subscription, ev mec.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = append(b.at, time.Now())
	if b.fail > 0 {
		b.fail--
		return errors.New("connection refused")
	}
	b.got = append(b.got, fmt.Sprintf("%s %d %s/%s", sub.Callback, ev.Seq, ev.Rule.App, ev.Rule.ID))
	return nil
}

func (b *inbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	got := b.got
	b.got = nil
	return got
}

func (g *rig) subscribe(app, callback string) mec.Subscription {
	g.t.Helper()
	sub, err := g.Subscribe(g.t.Context(), actor, app, callback)
	if err != nil {
		g.t.Fatal(err)
	}
	return sub
}

func TestSubscribeRefuses(t *testing.T) {
	g := start(t, mec.Options{Deliver: noDelivery})
	for _, uri := range []string{"", "x", "ftp://192.0.2.1/", "http://", "http:///x", "http://u:p@192.0.2.1/",
		"http://192.0.2.1/#f",
		"http://192.0.2.1/" + strings.Repeat("x", 2048), "http://[::1", "file:///etc/passwd"} {
		_, err := g.Subscribe(t.Context(), actor, "app1", uri)
		wantField(t, err, "callbackReference")
	}
	_, err := g.Subscribe(t.Context(), actor, "a/b", "http://192.0.2.1/")
	wantField(t, err, "appInstanceId")
	for range 16 {
		g.subscribe("app1", "http://192.0.2.1/")
	}
	_, err = g.Subscribe(t.Context(), actor, "app1", "http://192.0.2.1/")
	var l *mec.LimitError
	if !errors.As(err, &l) {
		t.Errorf("the 17th subscription: %v, want the limit", err)
	}
	g.subscribe("app2", "http://192.0.2.1/")
	wantIs(t, g.Unsubscribe(t.Context(), actor, "app1", "x"), store.ErrNotFound)
	_, err = g.Subscription("app1", "x")
	wantIs(t, err, store.ErrNotFound)
}

// TestDeliveryShare checks that applications whose callbacks hang use only their share of the deliveries.
func TestDeliveryShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		g := start(t, mec.Options{Deliver: func(ctx context.Context, sub mec.Subscription, ev mec.Event) error {
			if strings.HasPrefix(sub.App, "slow") {
				<-ctx.Done()
				return ctx.Err()
			}
			return box.deliver(ctx, sub, ev)
		}})
		for _, app := range []string{"slow1", "slow2"} {
			for range 16 {
				g.subscribe(app, "http://slow.test")
			}
			g.create(app, "r "+app+".example.com 192.0.2.1")
		}
		synctest.Wait()
		g.subscribe("app1", "http://one.test")
		g.create("app1", "r n.example.com 192.0.2.1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"http://one.test 3 app1/r"}, box.take()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		g.stop()
	})
}

func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		opts := mec.Options{Deliver: box.deliver}
		g := start(t, opts)
		g.create("app1", "r0 n0.example.com 192.0.2.1")
		one := g.subscribe("app1", "http://one.test")
		g.create("app1", "r1 n1.example.com 192.0.2.1")
		g.create("app2", "r2 n2.example.com 192.0.2.1")
		synctest.Wait()
		want := []string{"http://one.test 2 app1/r1"}
		if diff := cmp.Diff(want, box.take()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if sub, err := g.Subscription("app1", one.ID); err != nil || sub.Delivered != 2 || sub.State != "ACTIVE" {
			t.Errorf("subscription %+v, %v", sub, err)
		}

		// Events from before a restart are delivered after it, and none is delivered twice.
		g.stop()
		off := open(t, g.path, mec.Options{}, false)
		off.create("app1", "r3 n3.example.com 192.0.2.1")
		off.stop()
		g = open(t, g.path, opts, true)
		g.subscribe("app2", "http://two.test")
		g.create("app2", "r4 n4.example.com 192.0.2.1")
		synctest.Wait()
		want = []string{"http://one.test 4 app1/r3", "http://two.test 5 app2/r4"}
		if got := box.take(); len(got) != 2 || !(cmp.Equal(got, want) || got[0] == want[1] && got[1] == want[0]) {
			t.Errorf("delivered %v, want %v in any order", got, want)
		}
		if err := g.Unsubscribe(t.Context(), actor, "app1", one.ID); err != nil {
			t.Fatal(err)
		}
		g.create("app1", "r5 n5.example.com 192.0.2.1")
		synctest.Wait()
		if got := box.take(); got != nil {
			t.Errorf("delivered after Unsubscribe: %v", got)
		}
		if n, err := g.Terminate(t.Context(), actor, "app1"); err != nil || n.Subscriptions != 0 {
			t.Errorf("Terminate = %+v, %v", n, err)
		}
		synctest.Wait()
		g.stop()
	})
}

func TestDeliveryRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := inbox{fail: 3}
		g := start(t, mec.Options{Deliver: box.deliver})
		sub := g.subscribe("app1", "http://one.test")
		for i := range 3 {
			g.create("app1", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i))
		}
		synctest.Wait()
		got, err := g.Subscription("app1", sub.ID)
		if err != nil || got.Failures != 1 || got.LastError != "connection refused" || got.State != "ACTIVE" {
			t.Errorf("after a failure: %+v, %v", got, err)
		}
		begin := time.Now()
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff([]string{"http://one.test 1 app1/r0", "http://one.test 2 app1/r1", "http://one.test 3 app1/r2"},
			box.take()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		var pauses []time.Duration
		for _, at := range box.at {
			pauses = append(pauses, at.Sub(begin))
		}
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second, 7 * time.Second, 7 * time.Second}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("attempts at (-want +got):\n%s", diff)
		}
		if got, _ := g.Subscription("app1", sub.ID); got.Failures != 0 || got.LastError != "" || got.Delivered != 3 {
			t.Errorf("after success: %+v", got)
		}
		g.stop()
	})
}

func TestDeliveryGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := inbox{fail: 1000}
		g := start(t, mec.Options{Deliver: box.deliver})
		dead := g.subscribe("app1", "http://dead.test")
		g.create("app1", "r n.example.com 192.0.2.1")
		time.Sleep(time.Hour)
		for range 2 { // once before and once after a restart
			got, err := g.Subscription("app1", dead.ID)
			if err != nil || got.State != "FAILED" || got.Failures != 10 || got.LastError != "connection refused" {
				t.Errorf("after ten failures: %+v, %v", got, err)
			}
			g.stop()
			g = open(t, g.path, mec.Options{Deliver: box.deliver}, true)
		}
		g.create("app1", "r2 n2.example.com 192.0.2.1")
		time.Sleep(time.Hour)
		if len(box.at) != 10 {
			t.Errorf("%d attempts, want 10", len(box.at))
		}
		if err := g.Unsubscribe(t.Context(), actor, "app1", dead.ID); err != nil {
			t.Error(err)
		}
		g.stop()
	})
}

// TestDeliveryHangs checks that a callback that hangs delays neither edits nor other subscriptions, and that the feed
// bounds its backlog.
func TestDeliveryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		g := start(t, mec.Options{Deliver: func(ctx context.Context, sub mec.Subscription, ev mec.Event) error {
			if sub.Callback == "http://hangs.test" {
				<-ctx.Done()
				return ctx.Err()
			}
			return box.deliver(ctx, sub, ev)
		}})
		g.KeepEvents(5)
		hangs := g.subscribe("app1", "http://hangs.test")
		g.subscribe("app1", "http://well.test")
		for i := range 20 {
			g.create("app1", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i))
			synctest.Wait()
		}
		if got := box.take(); len(got) != 20 {
			t.Errorf("%d events of 20 were delivered beside one that hangs", len(got))
		}
		if got, _ := g.Subscription("app1", hangs.ID); got.Missed != 15 {
			t.Errorf("%d events of 20 were let go, want 15", got.Missed)
		}
		time.Sleep(time.Minute)
		if got, _ := g.Subscription("app1", hangs.ID); got.Failures == 0 || got.State != "ACTIVE" {
			t.Errorf("the subscription that hangs: %+v", got)
		}
		g.stop()
	})
}

// TestDeliveryGoesOn checks that each subscription resumes at its own position after a restart.
func TestDeliveryGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		down := true
		opts := mec.Options{Deliver: func(ctx context.Context, sub mec.Subscription, ev mec.Event) error {
			if down && sub.Callback == "http://slow.test" && ev.Seq > 1 {
				return errors.New("busy")
			}
			return box.deliver(ctx, sub, ev)
		}}
		g := start(t, opts)
		g.subscribe("app1", "http://fast.test")
		g.subscribe("app1", "http://slow.test")
		var rules []mec.Rule // in one commit, so that no queue is empty in between
		for i := range 3 {
			rules = append(rules, rule(t, "", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i)))
		}
		if _, err := g.Replace(t.Context(), actor, "app1", rules, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := box.take(); len(got) != 4 {
			t.Errorf("delivered %v, want 3 and 1", got)
		}
		g.stop()
		down = false
		g = open(t, g.path, opts, true)
		synctest.Wait()
		if diff := cmp.Diff([]string{"http://slow.test 2 app1/r1", "http://slow.test 3 app1/r2"}, box.take()); diff != "" {
			t.Errorf("delivered after the restart (-want +got):\n%s", diff)
		}
		g.stop()
	})
}

// TestDeliveryQuiet checks that an application without events has missed none, however many events others have.
func TestDeliveryQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		opts := mec.Options{Deliver: box.deliver}
		g := start(t, opts)
		g.KeepEvents(3)
		quiet := g.subscribe("app1", "http://quiet.test")
		for i := range 10 {
			g.create("app2", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i))
			synctest.Wait()
		}
		g.stop()
		g = open(t, g.path, opts, true)
		g.create("app1", "r n.example.com 192.0.2.1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"http://quiet.test 11 app1/r"}, box.take()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if sub, err := g.Subscription("app1", quiet.ID); err != nil || sub.Missed != 0 || sub.Delivered != 11 {
			t.Errorf("subscription %+v, %v", sub, err)
		}
		g.stop()
	})
}

// TestDeliveryTooFast checks a commit with more events than the feed keeps.
func TestDeliveryTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var box inbox
		g := start(t, mec.Options{Deliver: box.deliver})
		g.KeepEvents(3)
		sub := g.subscribe("app1", "http://one.test")
		var rules []mec.Rule
		for i := range 10 {
			rules = append(rules, rule(t, "", fmt.Sprintf("r%d n%d.example.com 192.0.2.1", i, i)))
		}
		if _, err := g.Replace(t.Context(), actor, "app1", rules, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := []string{"http://one.test 8 app1/r7", "http://one.test 9 app1/r8", "http://one.test 10 app1/r9"}
		if diff := cmp.Diff(want, box.take()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if sub, err := g.Subscription("app1", sub.ID); err != nil || sub.Missed != 7 {
			t.Errorf("subscription %+v, %v", sub, err)
		}
		g.stop()
	})
}
