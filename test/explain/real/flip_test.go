package real_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/test/explain/real"
)

var flips = flag.Int("flips", 8, "changes to predict and then to wait for")

const (
	atOnce    = 4 // flips
	pollEvery = 100 * time.Millisecond
	pollFor   = 30 * time.Second
)

// flip is a change of a name, from before to after. No before: the name is created.
type flip struct {
	kind          string
	name          string
	before, after string
	want          string // the address that shows the change
}

// seen is what polling a recursor has shown.
type seen struct {
	old time.Time // when the last question was sent that got the answer of before
	new time.Time // when the first answer of after came
	err error
}

// outcome is one recursor of one flip.
type outcome struct {
	flip
	recursor string
	state    safeat.State
	likely   time.Time // predicted; zero: it was not seen with an older answer
	until    time.Time // the bound of that
	safe     time.Time // everyone sees it
	seen
}

// off is how far the prediction was from what came.
func (o outcome) off() time.Duration { return o.likely.Sub(o.new) }

// broken reports whether an older answer came after the time by which there were none to be.
func (o outcome) broken() bool {
	return o.old.After(o.safe) || !o.until.IsZero() && o.old.After(o.until)
}

// Change a record, let nameplane say when each resolver shows it, and watch them.
func TestSafeAt(t *testing.T) {
	w := internet(t)
	var all []outcome
	for first := 0; first < *flips; first += atOnce {
		var wait sync.WaitGroup
		results := make([][]outcome, min(atOnce, *flips-first))
		for i := range results {
			wait.Go(func() { results[i] = change(t, w, newFlip(first+i)) })
		}
		wait.Wait()
		all = append(all, slices.Concat(results...)...)
		if t.Failed() {
			break
		}
	}
	table(t, all)
}

// newFlip is the nth, of each kind in turn, with a TTL from 5 to 8 seconds.
func newFlip(n int) flip {
	name, ttl := fmt.Sprintf("flip%d.live.com.", n), 5+rand.IntN(4)
	a := func(addr string) string { return fmt.Sprintf("%s %d A %s", name, ttl, addr) }
	alias := func(to string) string { return fmt.Sprintf("%s %d CNAME %s.target.live.com.", name, ttl, to) }
	switch n % 3 {
	case 0:
		return flip{"changed", name, a("185.49.140.100"), a("185.49.140.101"), "185.49.140.101"}
	case 1:
		return flip{"created", name, "", a("185.49.140.102"), "185.49.140.102"}
	default:
		return flip{"alias", name, alias("a"), alias("b"), "185.49.140.85"}
	}
}

// change does one flip.
func change(t *testing.T, w *real.World, f flip) (out []outcome) {
	if f.before != "" {
		if err := w.Set(t.Context(), f.name, f.before); err != nil {
			t.Error(err)
			return nil
		}
	}
	var wait sync.WaitGroup
	for _, r := range w.Recursors {
		wait.Go(func() {
			time.Sleep(rand.N(1500 * time.Millisecond)) // so that they do not all forget at once
			_, _ = real.Ask(t.Context(), r.Addr, f.name, dns.TypeA, true)
		})
	}
	wait.Wait()
	if err := w.Set(t.Context(), f.name, f.after); err != nil {
		t.Error(err)
		return nil
	}
	found := make([]seen, len(w.Recursors))
	for i, r := range w.Recursors {
		wait.Go(func() { found[i] = poll(t.Context(), r, f) })
	}
	rep := look(t, "compare", f.name, "A")
	wait.Wait()
	for i, r := range w.Recursors {
		if found[i].err != nil {
			t.Errorf("%s: %s: %v", r.Name, f.name, found[i].err)
			continue
		}
		out = append(out, predicted(rep, r, f, found[i]))
	}
	return out
}

func predicted(rep *report.Report, r real.Recursor, f flip, s seen) outcome {
	o := outcome{flip: f, recursor: r.Name, safe: rep.SafeAt, seen: s}
	for _, c := range rep.Caches {
		// All addresses of a recursor have one cache. At some of them it stands for a resolver that filters, where other data
		// says nothing about age.
		if !slices.Contains(r.Addrs, c.Addr) || c.NoVote || o.state != "" {
			continue
		}
		o.state = c.State
		if c.State == safeat.Old || c.State == safeat.Negative {
			o.until, o.likely = c.Until, c.Likely
		}
	}
	if o.safe.IsZero() {
		o.safe = rep.At
	}
	return o
}

// poll asks a recursor until it has the new answer.
func poll(ctx context.Context, r real.Recursor, f flip) (s seen) {
	ctx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		sent := time.Now()
		m, err := real.Ask(ctx, r.Addr, f.name, dns.TypeA, true)
		switch {
		case err == nil && slices.Contains(real.Data(m, dns.TypeA), f.want):
			s.new = time.Now()
			return s
		case err == nil:
			s.old = sent
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			s.err = fmt.Errorf("no new answer within %v: %v", pollFor, err)
			return s
		}
	}
}

// table prints what came of it, and judges.
func table(t *testing.T, all []outcome) {
	var b strings.Builder
	var errs []time.Duration
	broken := 0
	names := []string{}
	byName := map[string][]time.Duration{}
	for _, o := range all {
		key := o.kind + " at " + o.recursor
		if !slices.Contains(names, key) {
			names = append(names, key)
		}
		if o.broken() {
			broken++
			t.Errorf("%s: an older answer %v after it could be there: %+v", key, o.old.Sub(o.safe), o)
		}
		if !o.likely.IsZero() {
			errs = append(errs, o.off().Abs())
			byName[key] = append(byName[key], o.off())
		}
	}
	slices.Sort(names)
	for _, key := range names {
		d := slices.Sorted(slices.Values(byName[key]))
		if len(d) == 0 {
			fmt.Fprintf(&b, "%s: 0 predicted\n", key)
			continue
		}
		fmt.Fprintf(&b, "%s: %d predicted, off by %+.2f s (median), %+.2f to %+.2f s\n", key, len(d), d[len(d)/2].Seconds(), d[0].Seconds(), d[len(d)-1].Seconds())
	}
	slices.Sort(errs)
	if len(errs) < len(all)/2 {
		t.Fatalf("only %d of %d answers were old when nameplane asked: nothing was tested\n%s", len(errs), len(all), b.String())
	}
	median := errs[len(errs)/2]
	t.Logf("predictions of %d flips at 4 resolvers:\n%serror: median %.2f s, 95 %% %.2f s, worst %.2f s of %d predictions; bound broken %d times", *flips, b.String(),
		median.Seconds(), errs[len(errs)*95/100].Seconds(), errs[len(errs)-1].Seconds(), len(errs), broken)
	if median > time.Second {
		t.Errorf("the median error is %v, more than a second", median)
	}
}
