package real_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/test/explain/real"
)

// TestHarm checks that scanning a name that does not exist makes no resolver cache that. A loop of plain queries, as
// other checkers send, does it to all four resolvers, which shows that the test would notice.
func TestHarm(t *testing.T) { harm(t, internet(t)) }

func harm(t *testing.T, env *real.Environment) {
	t.Helper()
	var ours, loops int // negative cache entries
	for i := range 3 {
		name := fmt.Sprintf("ours%d.new.com.", i)
		for _, verb := range []string{"compare", "analyze", "compare"} {
			scanReport(t, verb, name)
		}
		held := entries(t, env, name)
		late := create(t, env, name)
		if held > 0 || late > 0 {
			t.Errorf("%s: %d resolvers have an entry, and %d deny it when it exists", name, held, late)
		}
		ours += max(held, late)
	}
	name := "loop.new.com."
	for _, r := range env.Recursors {
		if m := ask(t, r, name); m.Rcode != dns.RcodeNameError {
			t.Errorf("%s says %s", r.Name, dns.RcodeToString[m.Rcode])
		}
	}
	held := entries(t, env, name)
	if loops = create(t, env, name); loops != len(env.Recursors) {
		t.Errorf("after a loop of plain queries %d resolvers deny a name that exists: would this test see harm?", loops)
	}
	if held < 3 {
		t.Errorf("after a loop of plain queries the name is in %d caches", held)
	}
	kind := "that do not validate"
	if env.Anchors != "" {
		kind = "that validate"
	}
	t.Logf("negative entries at resolvers %s, for names that did not exist: compare and analyze %d in 3 names x %d "+
		"resolvers, plain queries %d of %d", kind, ours, len(env.Recursors), loops, len(env.Recursors))
}

// entries returns how many recursors know a name: it is in their cache, or they asked the authority for it.
func entries(t *testing.T, env *real.Environment, name string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, r := range env.Recursors {
		holds, _, err := env.Holds(ctx, r, name[:len(name)-1])
		if err != nil {
			t.Fatal(err)
		}
		asked, err := env.Asked(r.Addr, name)
		if err != nil {
			t.Fatal(err)
		}
		if holds || asked > 0 {
			n++
		}
	}
	return n
}

// create creates a name at the authority, and returns how many recursors do not see it at once.
func create(t *testing.T, env *real.Environment, name string) (late int) {
	t.Helper()
	if err := env.Set(t.Context(), name, name+" 300 A 185.49.140.90"); err != nil {
		t.Fatal(err)
	}
	for _, r := range env.Recursors {
		if len(real.Data(ask(t, r, name), dns.TypeA)) == 0 {
			late++
		}
	}
	return late
}

func ask(t *testing.T, r real.Recursor, name string) *dns.Msg {
	t.Helper()
	var m *dns.Msg
	var err error
	for range 3 {
		if m, err = real.Ask(t.Context(), r.Addr, name, dns.TypeA, true); err == nil {
			return m
		}
	}
	t.Fatalf("%s: %s: %v", r.Name, name, err)
	return nil
}

// TestNegative checks that compare finds every resolver with a negative answer for a new name, and predicts its
// expiry.
func TestNegative(t *testing.T) {
	env := internet(t)
	const name = "late.new.com."
	denied := map[string]time.Time{}
	for _, r := range env.Recursors {
		ask(t, r, name)
		denied[r.Addr] = time.Now().Add(real.NewNegative * time.Second)
	}
	if err := env.Set(t.Context(), name, name+" 300 A 185.49.140.91"); err != nil {
		t.Fatal(err)
	}
	rep := scanReport(t, "compare", name, "A")
	last := time.Time{}
	for _, c := range rep.Caches {
		want, ok := denied[c.Addr]
		if !ok {
			continue
		}
		off := c.Likely.Sub(want)
		t.Logf("%s: %s until %v, %v from what it should be", c.Addr, c.State, c.Until.Format(time.TimeOnly),
			off.Round(10*time.Millisecond))
		if c.State != "negative" || off < -2*time.Second || off > 3*time.Second || c.Until.Before(want.Add(-time.Second)) {
			t.Errorf("%s: %s until %v, want negative until %v", c.Addr, c.State, c.Until, want)
		}
		last = want
	}
	for _, f := range rep.Findings {
		if f.ID != "TTL03" {
			continue
		}
		t.Logf("TTL03: %s %s", f.Words, f.Visible)
		// This is a bound: not before the last negative answer expires, plus some seconds for resolvers that were not
		// asked.
		if off := f.Visible.Sub(last); f.Status != explain.Fail || off < 0 || off > 5*time.Second {
			t.Errorf("TTL03 %s: visible by %v, want %v", f.Status, f.Visible, last)
		}
		return
	}
	t.Errorf("TTL03 was not checked: %s", texts(rep))
}
