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

// To look at a name that does not exist yet must not make any resolver remember that. The loop that other checkers run does
// it to all four, which shows that this test would see it.
func TestHarm(t *testing.T) { harm(t, internet(t)) }

func harm(t *testing.T, w *real.World) {
	t.Helper()
	var ours, loops int // negative entries
	for i := range 3 {
		name := fmt.Sprintf("ours%d.new.com.", i)
		for _, verb := range []string{"compare", "analyze", "compare"} {
			look(t, verb, name)
		}
		held := entries(t, w, name)
		late := create(t, w, name)
		if held > 0 || late > 0 {
			t.Errorf("%s: %d resolvers have an entry, and %d deny it when it exists", name, held, late)
		}
		ours += max(held, late)
	}
	name := "loop.new.com."
	for _, r := range w.Recursors {
		if m := ask(t, r, name); m.Rcode != dns.RcodeNameError {
			t.Errorf("%s says %s", r.Name, dns.RcodeToString[m.Rcode])
		}
	}
	held := entries(t, w, name)
	if loops = create(t, w, name); loops != len(w.Recursors) {
		t.Errorf("after a loop of plain queries %d resolvers deny a name that exists: would this test see harm?", loops)
	}
	if held < 3 {
		t.Errorf("after a loop of plain queries the name is in %d caches", held)
	}
	kind := "that do not validate"
	if w.Anchors != "" {
		kind = "that validate"
	}
	t.Logf("negative entries at resolvers %s, for names that did not exist: compare and analyze %d in 3 names x %d resolvers, plain queries %d of %d", kind, ours, len(w.Recursors), loops, len(w.Recursors))
}

// entries is at how many recursors something is known of a name: it is in the cache, or was asked for at the authority.
func entries(t *testing.T, w *real.World, name string) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, r := range w.Recursors {
		holds, _, err := w.Holds(ctx, r, name[:len(name)-1])
		if err != nil {
			t.Fatal(err)
		}
		asked, err := w.Asked(r.Addr, name)
		if err != nil {
			t.Fatal(err)
		}
		if holds || asked > 0 {
			n++
		}
	}
	return n
}

// create makes a name at the authority, and returns how many recursors do not see it at once.
func create(t *testing.T, w *real.World, name string) (late int) {
	t.Helper()
	if err := w.Set(t.Context(), name, name+" 300 A 185.49.140.90"); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.Recursors {
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

// A name that was created too late is found at every resolver that remembers that there was none, with the time until when.
func TestNegative(t *testing.T) {
	w := internet(t)
	const name = "late.new.com."
	denied := map[string]time.Time{}
	for _, r := range w.Recursors {
		ask(t, r, name)
		denied[r.Addr] = time.Now().Add(real.NewNegative * time.Second)
	}
	if err := w.Set(t.Context(), name, name+" 300 A 185.49.140.91"); err != nil {
		t.Fatal(err)
	}
	rep := look(t, "compare", name, "A")
	last := time.Time{}
	for _, c := range rep.Caches {
		want, ok := denied[c.Addr]
		if !ok {
			continue
		}
		off := c.Likely.Sub(want)
		t.Logf("%s: %s until %v, %v from what it should be", c.Addr, c.State, c.Until.Format(time.TimeOnly), off.Round(10*time.Millisecond))
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
		// A bound: not before the last of them has forgotten, and with some seconds for all who were not asked.
		if off := f.Visible.Sub(last); f.Status != explain.Fail || off < 0 || off > 5*time.Second {
			t.Errorf("TTL03 %s: visible by %v, want %v", f.Status, f.Visible, last)
		}
		return
	}
	t.Errorf("TTL03 was not checked: %s", texts(rep))
}
