package lab_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// gatherer returns the Gatherer that the commands use with --lab.
func gatherer(t *testing.T, l *lab.Lab) *gather.Gatherer {
	t.Helper()
	anchor, err := secure.ParseAnchor(l.Anchor)
	if err != nil {
		t.Fatal(err)
	}
	g := &gather.Gatherer{Exchanger: &resolve.Client{Dial: l.Dial, Roots: l.Roots, AsIs: true},
		Prober: &probe.Prober{Dial: l.Dial, Listen: l.Listen}, Registry: &registry.Client{Dial: l.Dial, Roots: l.Roots},
		Hints: l.Hints, Anchors: []secure.Anchor{anchor}}
	for _, r := range resolvers.Load().Resolvers {
		if slices.ContainsFunc(l.Resolvers, func(x lab.Resolver) bool { return x.Name == r.ID }) {
			g.Resolvers = append(g.Resolvers, r)
		}
	}
	return g
}

// try runs the command of a domain and returns the failed checks by ID.
func try(t *testing.T, g *gather.Gatherer, d lab.Domain) map[string]explain.Severity {
	t.Helper()
	words := strings.Fields(d.Try)
	g.Options.Change = slices.Contains(words, "--change")
	g.Options.Private = slices.Contains(words, "--private")
	g.Options.DKIM = nil
	if at := slices.Index(words, "--dkim"); at >= 0 {
		g.Options.DKIM = strings.Split(words[at+1], ",")
	}
	var types []rr.Type
	for _, w := range words[3:] {
		if typ, err := rr.ParseType(w); err == nil {
			types = append(types, typ)
		}
	}
	var f *explain.Facts
	var err error
	switch words[1] {
	case "scan":
		f, err = g.Scan(t.Context(), words[2])
	case "analyze":
		f, err = g.Analyze(t.Context(), words[2], types)
	case "compare":
		f, err = g.Compare(t.Context(), words[2], types)
	default:
		t.Fatalf("%s: %s", d.Name, d.Try)
	}
	if err != nil {
		t.Fatalf("%s: %v", d.Try, err)
	}
	checkReplay(t, f)
	failed := map[string]explain.Severity{}
	for _, x := range check.Run(f) {
		if x.Status == explain.Fail {
			if len(x.Evidence) == 0 && !strings.HasPrefix(x.ID, "REG") { // registries are not queried with DNS
				t.Errorf("%s: %s of %s has no evidence", d.Try, x.ID, x.Subject)
			}
			failed[x.ID] = x.Severity
		}
	}
	return failed
}

// checkReplay checks that facts give the same report after they were saved and loaded.
func checkReplay(t *testing.T, f *explain.Facts) {
	t.Helper()
	var file, first, second bytes.Buffer
	if err := gather.Save(&file, f); err != nil {
		t.Fatal(err)
	}
	read, err := gather.Load(&file)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(report.Make(f, check.Run(f)).Write(&first, "json", report.TextOptions{}),
		report.Make(read, check.Run(read)).Write(&second, "json", report.TextOptions{}))
	if err != nil || first.String() != second.String() {
		t.Errorf("%s: the saved facts give another report, %v:\n%s\n%s", f.Name, err, &first, &second)
	}
}

// TestDomains runs the command of each domain of the lab. The listed checks must fail. Healthy domains must have
// nothing worse than a notice.
func TestDomains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := lab.Start(ctx, lab.Options{Memory: true})
		if err != nil {
			t.Fatal(err)
		}
		g := gatherer(t, l)
		for _, d := range l.Domains {
			failed := try(t, g, d)
			for _, id := range d.Finds {
				if _, ok := failed[id]; !ok {
					t.Errorf("%s: %s does not fail; the failed checks are %v", d.Try, id, failed)
				}
			}
			if d.Name == "flatten.test" && failed["NAM11"] != explain.Warning {
				t.Errorf("%s: NAM11 has the severity %s, but no server is behind", d.Try, failed["NAM11"])
			}
			for id, severity := range failed {
				if d.Wrong == "" && severity != explain.Info && severity != explain.Notice {
					t.Errorf("%s: %s fails, but nothing is wrong", d.Try, id)
				}
			}
		}
		cancel()
		if err := l.Wait(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Minute) // until idle connections are closed
	})
}
