package scans_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/store"
)

// TestDocument checks that a report is rendered once for each format, however many clients read it.
func TestDocument(t *testing.T) {
	s, x := scanFacts(t, func(f *explain.Facts) *explain.Facts { return f })
	tags := map[string]string{}
	for _, format := range report.Formats {
		bodies := make([]scans.Document, 8)
		var all sync.WaitGroup
		for i := range bodies {
			all.Go(func() {
				var err error
				if bodies[i], err = documentOf(s, "p1", x.ID, format); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for _, d := range bodies {
			if len(d.Body) == 0 || &d.Body[0] != &bodies[0].Body[0] || d.Tag != scans.TagOf(d.Body) {
				t.Errorf("%s is built again: %d bytes, %s", format, len(d.Body), d.Tag)
			}
		}
		if other := tags[bodies[0].Tag]; other != "" {
			t.Errorf("%s and %s have the same tag", format, other)
		}
		tags[bodies[0].Tag] = format
	}
	if _, err := documentOf(s, "p2", x.ID, "json"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another project's report: %v", err)
	}
	if _, err := documentOf(s, "p1", x.ID, "pdf"); err == nil {
		t.Error("there is a report in a form that does not exist")
	}
}

// TestDocumentsBounded checks that the least recently used documents are evicted, and rendered again on demand.
func TestDocumentsBounded(t *testing.T) {
	w := &fakeScanner{addr: strings.Repeat("x", 3<<20)}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{})
	var bodies []scans.Document
	var all []scans.Scan
	for i := range 4 {
		x := finish(t, s, begin(t, s, alice, explain.Analyze, fmt.Sprintf("%d.test", i)))
		d, err := documentOf(s, "p1", x.ID, "json")
		if err != nil || len(d.Body) < 3<<20 {
			t.Fatalf("%d bytes, %v", len(d.Body), err)
		}
		all, bodies = append(all, x), append(bodies, d)
	}
	for _, i := range []int{3, 0} {
		again := i == 0
		d, err := documentOf(s, "p1", all[i].ID, "json")
		if err != nil || d.Tag != bodies[i].Tag || (&d.Body[0] != &bodies[i].Body[0]) != again {
			t.Errorf("document %d: made again %v, want %v; %v", i, &d.Body[0] != &bodies[i].Body[0], again, err)
		}
	}
}

// TestEarlierSchema reads scans that were stored with schemas 1 and 2. Their verdicts are not read, so they get the
// current schema.
func TestEarlierSchema(t *testing.T) {
	for _, schema := range []string{explain.Schema1, explain.Schema2} {
		s, x := scanFacts(t, func(f *explain.Facts) *explain.Facts {
			f.Schema = schema
			return f
		})
		if f, err := factsOf(s, "p1", x.ID); err != nil || f.Schema != explain.Schema {
			t.Errorf("facts of %s: %+v, %v; want %q", schema, f, err, explain.Schema)
		}
	}
}
