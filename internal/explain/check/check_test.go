package check_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
)

// story is one situation, and the expected result of a check.
type story struct {
	id, name string
	with     func(*explain.Facts) // changes the healthy facts; nil: no change
	want     string               // "fail error", "pass", "unknown" or "" for no finding
	says     string               // text that the findings must contain
}

func stories() []story {
	return slices.Concat(registrationStories(), delegationStories(), serverStories(), soaStories(), nameStories(),
		answerStories(),
		cacheStories(), ttlStories(), secureStories(), conductStories(), mailStories(),
		serviceStories(), refusedStories(), vantageStories())
}

func TestStories(t *testing.T) {
	for _, s := range stories() {
		t.Run(s.id+" "+s.name, func(t *testing.T) {
			c, ok := check.Find(s.id)
			if !ok {
				t.Fatalf("there is no check %s", s.id)
			}
			f := healthy()
			if s.with != nil {
				s.with(f)
			}
			found := c.Judge(f)
			if got := summary(found); got != s.want {
				t.Fatalf("%s says %q, want %q:\n%s", s.id, got, s.want, lines(found))
			}
			if s.says != "" && !strings.Contains(lines(found), s.says) {
				t.Errorf("%s says\n%swhich has no %q", s.id, lines(found), s.says)
			}
			for _, x := range found {
				sound(t, c, x)
			}
		})
	}
}

// summary returns the status and severity of the worst finding.
func summary(found []explain.Finding) string {
	switch {
	case len(found) == 0:
		return ""
	case found[0].Status == explain.Fail:
		return "fail " + string(found[0].Severity)
	}
	return string(found[0].Status)
}

func lines(found []explain.Finding) string {
	var b strings.Builder
	for _, x := range found {
		fmt.Fprintf(&b, "%s %s %s [%s] %s | %s | %s\n", x.ID, x.Status, x.Severity, x.Subject, x.Words, x.Fix, x.Actor)
	}
	return b.String()
}

// sound checks the properties of every finding.
func sound(t *testing.T, c check.Check, x explain.Finding) {
	t.Helper()
	if x.ID != c.ID || x.Subject == "" || !c.Severity.AtLeast(x.Severity) {
		t.Errorf("%s: the id or subject is missing, or it is worse than %s: %+v", c.ID, c.Severity, x)
	}
	if !strings.HasSuffix(x.Words, ".") || strings.Contains(x.Words, "%!") || strings.Contains(x.Words, "..") ||
		strings.Contains(x.Words, " may be mis") {
		t.Errorf("%s: this is not a sentence: %s", c.ID, x.Words)
	}
	if x.Status == explain.Fail && (x.Fix == "" || x.Actor == "") {
		t.Errorf("%s: who does what about it? %+v", c.ID, x)
	}
	if x.Status != explain.Fail && (x.Fix != "" || !x.Visible.IsZero()) {
		t.Errorf("%s: there is nothing to fix: %+v", c.ID, x)
	}
}

// TestEveryCheckHasItsStories checks that every check has a story that fails, one that passes, and one that is unknown
// or does not apply.
func TestEveryCheckHasItsStories(t *testing.T) {
	seen := map[string]map[string]bool{}
	for _, s := range stories() {
		if seen[s.id] == nil {
			seen[s.id] = map[string]bool{}
		}
		kind, _, _ := strings.Cut(s.want, " ")
		if kind == "" {
			kind = "unknown"
		}
		seen[s.id][kind] = true
	}
	for _, c := range check.All() {
		want := map[string]bool{"fail": true, "pass": true, "unknown": true}
		if c.ID == "REG09" || c.ID == "VAN04" { // these never fail
			delete(want, "fail")
		}
		if diff := cmp.Diff(want, seen[c.ID]); diff != "" {
			t.Errorf("the stories of %s (-want +got):\n%s", c.ID, diff)
		}
	}
}

func TestCatalogue(t *testing.T) {
	all := check.All()
	counts := map[string]int{}
	for i, c := range all {
		counts[c.ID[:3]]++
		if i > 0 && c.ID[:3] == all[i-1].ID[:3] && c.ID <= all[i-1].ID {
			t.Errorf("%s comes after %s", c.ID, all[i-1].ID)
		}
		for what, text := range map[string]string{"title": c.Title, "what": c.What, "why": c.Why, "how": c.How, "fix": c.Fix,
			"group": c.Group} {
			if text == "" || what != "title" && what != "group" && !strings.HasSuffix(text, ".") {
				t.Errorf("%s has no proper %s: %q", c.ID, what, text)
			}
			if strings.Contains(text, "misconfigured") || strings.Contains(text, "—") {
				t.Errorf("%s: %q", c.ID, text)
			}
		}
		if len(c.Kinds) == 0 || strings.HasSuffix(c.Title, ".") {
			t.Errorf("%s has no kinds, or its title ends with a dot", c.ID)
		}
		if got, ok := check.Find(c.ID); !ok || got.Title != c.Title {
			t.Errorf("Find(%q) = %v, %v", c.ID, got.Title, ok)
		}
	}
	want := map[string]int{"REG": 9, "DEL": 20, "SOA": 10, "NAM": 19, "TTL": 11, "SEC": 11, "SRV": 7, "MAI": 12,
		"SVC": 31, "OWN": 6, "TLS": 12, "HTT": 7, "VAN": 4}
	if diff := cmp.Diff(want, counts); diff != "" {
		t.Errorf("the catalogue (-want +got):\n%s", diff)
	}
}

var kinds = []explain.Kind{explain.Scan, explain.Analyze, explain.Compare, explain.KindService}

// TestHealthy checks that all checks pass for a domain without faults.
func TestHealthy(t *testing.T) {
	for _, kind := range kinds {
		f := healthy()
		f.Kind = kind
		for _, x := range check.Run(f) {
			if x.Status != explain.Pass {
				t.Errorf("%s: %s", kind, lines([]explain.Finding{x}))
			}
		}
	}
}

// TestNothingKnown checks, like TestSomethingMissing, that missing facts are unknown and never a failure.
func TestNothingKnown(t *testing.T) {
	for _, kind := range kinds {
		for _, f := range []*explain.Facts{{Kind: kind},
			{Kind: kind, Input: "x.example.org", Name: name("x.example.org"), Domain: name("example.org"), At: now}} {
			for _, x := range check.Run(f) {
				if x.Status == explain.Fail {
					t.Errorf("%s: %s", kind, lines([]explain.Finding{x}))
				}
			}
		}
	}
}

func TestSomethingMissing(t *testing.T) {
	fields := reflect.TypeFor[explain.Facts]()
	for i := range fields.NumField() {
		for _, kind := range kinds {
			f := healthy()
			f.Kind = kind
			v := reflect.ValueOf(f).Elem().Field(i)
			// required in every scan
			if name := fields.Field(i).Name; name == "Kind" || name == "Name" || name == "Vantage" {
				continue
			}
			v.SetZero()
			for _, x := range check.Run(f) {
				if x.Status == explain.Fail {
					t.Errorf("without %s: %s", fields.Field(i).Name, lines([]explain.Finding{x}))
				}
			}
		}
	}
}

// TestIntercepted checks that intercepted replies neither pass nor fail a check.
func TestIntercepted(t *testing.T) {
	for i, s := range stories() {
		f := healthy()
		if s.with != nil {
			s.with(f)
		}
		f.Kind = kinds[i%len(kinds)]
		f.Vantage.Intercepted = yes()
		for _, x := range check.Run(f) {
			c, _ := check.Find(x.ID)
			sound(t, c, x)
			here := c.Group == check.Registration && x.ID != "REG07" && x.ID != "REG08" || c.Group == check.Vantage ||
				x.ID == "NAM17" || x.ID == "NAM18" || x.ID == "NAM19"
			if !here && x.Status != explain.NotKnown {
				t.Errorf("%s %s: %s", s.id, s.name, lines([]explain.Finding{x}))
			}
			if x.ID == "VAN01" && x.Status != explain.Fail {
				t.Errorf("%s %s: %s", s.id, s.name, lines([]explain.Finding{x}))
			}
		}
	}
}

// TestBudget checks that a scan that reached its limits has no failures.
func TestBudget(t *testing.T) {
	for _, kind := range kinds {
		f := healthy()
		f.Kind = kind
		unfound(f)
		unasked(f)
		for i := range f.Caches {
			f.Caches[i].Samples = nil
		}
		for _, x := range check.Run(f) {
			if x.Status == explain.Fail {
				t.Errorf("%s: %s", kind, lines([]explain.Finding{x}))
			}
		}
	}
}

// TestOrder checks that findings are sorted by status, severity and catalogue, and always in the same order.
func TestOrder(t *testing.T) {
	rank := map[explain.Status]int{explain.Fail: 0, explain.NotKnown: 1, explain.Pass: 2}
	for i, s := range stories() {
		if !strings.HasPrefix(s.want, "fail") {
			continue
		}
		f := healthy()
		s.with(f)
		f.Kind = kinds[i%len(kinds)]
		found := check.Run(f)
		for i := 1; i < len(found); i++ {
			a, b := found[i-1], found[i]
			if rank[a.Status] > rank[b.Status] || a.Status == explain.Fail && b.Status == explain.Fail &&
				!a.Severity.AtLeast(b.Severity) {
				t.Errorf("%s %s: %s before %s", s.id, s.name, lines(found[i-1:i]), lines(found[i:i+1]))
			}
		}
		if !reflect.DeepEqual(found, check.Run(f)) {
			t.Errorf("%s %s: not the same again", s.id, s.name)
		}
	}
}

// TestTogether checks that two stories at once give sound findings and no panic.
func TestTogether(t *testing.T) {
	all := slices.DeleteFunc(stories(), func(s story) bool { return s.with == nil })
	random := rand.New(rand.NewPCG(1, 2))
	for range 150 {
		a, b := all[random.IntN(len(all))], all[random.IntN(len(all))]
		f := healthy()
		f.Kind = kinds[random.IntN(len(kinds))]
		if !apply(f, a) || !apply(f, b) {
			continue
		}
		for _, x := range check.Run(f) {
			c, _ := check.Find(x.ID)
			sound(t, c, x)
		}
		if t.Failed() {
			t.Fatalf("%s %s, and %s %s", a.id, a.name, b.id, b.name)
		}
	}
}

// apply changes the facts by a story. It returns false if the story cannot be applied, because another one removed the
// facts it changes.
func apply(f *explain.Facts, s story) (ok bool) {
	defer func() { ok = recover() == nil }()
	s.with(f)
	return true
}
