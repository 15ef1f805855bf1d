package scans_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// crash runs a service that hangs for ever in its first scan. It returns all accepted scans when the first has begun.
func crash(t *testing.T, pub *publish.Publisher, names ...string) (all []scans.Scan) {
	t.Helper()
	begun := make(chan struct{}, 1)
	scan := func(_ context.Context, _ dnsname.Name, _ scans.Request, _ []explain.Past,
		progress func(scans.Progress)) (*explain.Facts, error) {
		progress(scans.Progress{Step: "walk", Queries: 7})
		begun <- struct{}{}
		select {}
	}
	s, err := scans.Open(pub, scan, scans.Options{Parallel: 1, Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Run(context.Background()) }()
	for _, name := range names {
		all = append(all, begin(t, s, alice, explain.Scan, name))
	}
	<-begun
	return all
}

// TestCrash checks that the next server runs the scans that a crashed server had accepted. A scan that crashes the
// server is not repeated for ever.
func TestCrash(t *testing.T) {
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	all := crash(t, pub, "a.test", "b.test", "c.test")
	crash(t, pub)
	s := serve(t, pub, &fakeScanner{addr: "192.0.2.80"}, scans.Options{})
	if again := begin(t, s, alice, explain.Scan, "b.test"); again.ID != all[1].ID {
		t.Error("the same request right after the crash is another scan")
	}
	for i, x := range all {
		got := finish(t, s, x)
		want, interrupted := scans.Done, 0
		if i == 0 {
			want, interrupted = scans.Failed, 2
		}
		if got.State != want || got.Interrupted != interrupted || !got.Created.Equal(x.Created) {
			t.Errorf("%s: %s, interrupted %d times, %q", x.Name, got.State, got.Interrupted, got.Problem)
		}
		if i == 0 && !strings.HasPrefix(got.Problem, "interrupted: ") {
			t.Errorf("the one that was interrupted twice: %q", got.Problem)
		}
	}
}

// TestCrashOnce checks that a scan that ran when the server crashed runs again.
func TestCrashOnce(t *testing.T) {
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	x := crash(t, pub, "a.test")[0]
	s := serve(t, pub, &fakeScanner{addr: "192.0.2.80"}, scans.Options{})
	if got := finish(t, s, x); got.State != scans.Done || got.Interrupted != 1 || got.Queries != 3 {
		t.Errorf("%s, interrupted %d times, %d queries, %q", got.State, got.Interrupted, got.Queries, got.Problem)
	}
	if again := serve(t, pub, &fakeScanner{}, scans.Options{}); len(again.List("p1", scans.Filter{})) != 1 {
		t.Errorf("after another start: %+v", again.List("p1", scans.Filter{}))
	}
}

// TestStopped checks that scans that were left by a stopped server run on the next one, and do not count as
// interrupted.
func TestStopped(t *testing.T) {
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	var all []scans.Scan
	for range 3 {
		w := &fakeScanner{gate: make(chan struct{})}
		s, err := scans.Open(pub, w.scan, scans.Options{Parallel: 1, Parse: parse})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		if all == nil {
			all = append(all, begin(t, s, alice, explain.Scan, "a.test"), begin(t, s, alice, explain.Scan, "b.test"))
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	s := serve(t, pub, &fakeScanner{addr: "192.0.2.80"}, scans.Options{})
	for _, x := range all {
		if got := finish(t, s, x); got.State != scans.Done || got.Interrupted != 0 {
			t.Errorf("%s: %s, interrupted %d times, %q", x.Name, got.State, got.Interrupted, got.Problem)
		}
	}
}

// TestSettingsChanged checks that a scan that the settings no longer allow does not run.
func TestSettingsChanged(t *testing.T) {
	pub := openStore(t, filepath.Join(t.TempDir(), "db"))
	x := crash(t, pub, "printer.local")[0]
	s := serve(t, pub, &fakeScanner{}, scans.Options{Public: true})
	if got := finish(t, s, x); got.State != scans.Failed || !strings.Contains(got.Problem, scans.ErrPrivate.Error()) {
		t.Errorf("%s %q", got.State, got.Problem)
	}
}

// TestNotStored checks that a scan that cannot be stored is not accepted and does not use a slot of the queue.
func TestNotStored(t *testing.T) {
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	over, stop := context.WithCancel(t.Context())
	stop()
	if err := pub.Run(over); err != nil {
		t.Fatal(err)
	}
	s, err := scans.Open(pub, (&fakeScanner{}).scan, scans.Options{Parse: parse, Queue: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.Start(t.Context(), alice, client, scans.Request{Kind: explain.Scan, Target: "a.test"}); !errors.Is(err,
			store.ErrUnavailable) {
			t.Errorf("a store that takes nothing: %v", err)
		}
	}
	if got := s.List("p1", scans.Filter{}); len(got) != 0 {
		t.Errorf("what was not accepted is there: %+v", got)
	}
}
