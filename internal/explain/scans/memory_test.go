package scans_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestMemory checks that every read of facts reserves memory first and returns it: with the share of the project in
// use, facts and reports are refused, and a new scan ignores earlier ones.
func TestMemory(t *testing.T) {
	const limit = 128 << 20
	w := &fakeScanner{addr: "192.0.2.80"}
	scan := func(ctx context.Context, name dnsname.Name, r scans.Request, past []explain.Past,
		progress func(scans.Progress)) (*explain.Facts, error) {
		f, err := w.scan(ctx, name, r, past, progress)
		for range 20 {
			f.Exchanges = append(f.Exchanges, iterate.Exchange{Zone: f.Name,
				Question: iterate.Question{Name: f.Name, Type: rr.TypeA}, Reply: make([]byte, 10_000)})
		}
		return f, err
	}
	b := budget.New(limit)
	s, err := scans.Open(openStore(t, filepath.Join(t.TempDir(), "db")), scan, scans.Options{Parse: parse, Budget: b,
		Share: time.Nanosecond, Patience: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	first := finish(t, s, begin(t, s, alice, explain.Analyze, "www.example.org"))

	release, err := b.Take(t.Context(), alice.Project, limit*3/4/4) // the share of one project
	if err != nil {
		t.Fatal(err)
	}
	if _, err := factsOf(s, "p1", first.ID); !errors.Is(err, scans.ErrMemory) {
		t.Errorf("facts without memory: %v", err)
	}
	if _, err := documentOf(s, "p1", first.ID, "json"); !errors.Is(err, scans.ErrMemory) {
		t.Errorf("a report without memory: %v", err)
	}
	if x := finish(t, s, begin(t, s, alice, explain.Analyze, "www.example.org")); x.State != scans.Done ||
		x.Previous != "" {
		t.Errorf("a scan without memory for the earlier one: %s %s, previous %q", x.State, x.Problem, x.Previous)
	}
	release()

	for range 50 { // 50 times 3 MB would not fit into the share if they were not returned
		if _, err := factsOf(s, "p1", first.ID); err != nil {
			t.Fatal(err)
		}
		for range 2 { // rendered, and cached
			if _, err := documentOf(s, "p1", first.ID, "text"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := documentOf(s, "p1", first.ID, "pdf"); err == nil || errors.Is(err, scans.ErrMemory) {
			t.Fatal(err)
		}
		s.Findings(t.Context(), "p1", first.ID)
	}
	if x := finish(t, s, begin(t, s, alice, explain.Analyze, "www.example.org")); x.Previous == "" {
		t.Errorf("with memory again: %s %s, previous %q", x.State, x.Problem, x.Previous)
	}
	if release, err = b.Take(t.Context(), alice.Project, limit/2); err != nil {
		t.Fatal("memory was not returned:", err)
	}
	release()
}
