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

var flips = flag.Int("flips", 8, "number of changes to predict and wait for")

const (
	atOnce    = 4 // concurrent flips
	pollEvery = 100 * time.Millisecond
	pollFor   = 30 * time.Second
)

// flip is a change of a name, from before to after. If before is empty, the name is created.
type flip struct {
	kind          string
	name          string
	before, after string
	want          string // the address that shows the change
}

// seen is the result of polling a recursor.
type seen struct {
	old time.Time // when the last query with the old answer was sent
	new time.Time // when the first new answer came
	err error
}

// outcome is the result of one flip at one recursor.
type outcome struct {
	flip
	recursor string
	state    safeat.State
	likely   time.Time // predicted time; zero: it had no older answer
	until    time.Time // upper bound of likely
	safe     time.Time // predicted time at which every resolver has the new answer
	seen
}

// off returns the error of the prediction.
func (o outcome) off() time.Duration { return o.likely.Sub(o.new) }

// broken reports whether an older answer came after the predicted bound.
func (o outcome) broken() bool {
	return o.old.After(o.safe) || !o.until.IsZero() && o.old.After(o.until)
}

// TestSafeAt changes records, lets nameplane predict when each resolver has the new answer, and polls the resolvers.
func TestSafeAt(t *testing.T) {
	env := internet(t)
	var all []outcome
	for first := 0; first < *flips; first += atOnce {
		var wait sync.WaitGroup
		results := make([][]outcome, min(atOnce, *flips-first))
		for i := range results {
			wait.Go(func() { results[i] = change(t, env, newFlip(first+i)) })
		}
		wait.Wait()
		all = append(all, slices.Concat(results...)...)
		if t.Failed() {
			break
		}
	}
	table(t, all)
}

// newFlip returns the nth flip, alternating between the kinds, with a TTL of 5 to 8 seconds.
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

// change runs one flip.
func change(t *testing.T, env *real.Environment, f flip) (out []outcome) {
	if f.before != "" {
		if err := env.Set(t.Context(), f.name, f.before); err != nil {
			t.Error(err)
			return nil
		}
	}
	var wait sync.WaitGroup
	for _, r := range env.Recursors {
		wait.Go(func() {
			time.Sleep(rand.N(1500 * time.Millisecond)) // spreads the expiry of the old answers
			_, _ = real.Ask(t.Context(), r.Addr, f.name, dns.TypeA, true)
		})
	}
	wait.Wait()
	if err := env.Set(t.Context(), f.name, f.after); err != nil {
		t.Error(err)
		return nil
	}
	found := make([]seen, len(env.Recursors))
	for i, r := range env.Recursors {
		wait.Go(func() { found[i] = poll(t.Context(), r, f) })
	}
	rep := scanReport(t, "compare", f.name, "A")
	wait.Wait()
	for i, r := range env.Recursors {
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
		// All addresses of a recursor share one cache. At some addresses it stands for a filtering resolver, whose
		// different data say nothing about age.
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

// poll queries a recursor until it has the new answer.
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

// table prints the results, and fails if a bound was broken or the median error is above a second.
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
		fmt.Fprintf(&b, "%s: %d predicted, off by %+.2f s (median), %+.2f to %+.2f s\n", key, len(d), d[len(d)/2].Seconds(),
			d[0].Seconds(), d[len(d)-1].Seconds())
	}
	slices.Sort(errs)
	if len(errs) < len(all)/2 {
		t.Fatalf("only %d of %d answers were old when nameplane asked: nothing was tested\n%s", len(errs), len(all),
			b.String())
	}
	median := errs[len(errs)/2]
	t.Logf("predictions of %d flips at 4 resolvers:\n%serror: median %.2f s, 95 %% %.2f s, worst %.2f s of %d "+
		"predictions; bound broken %d times", *flips, b.String(),
		median.Seconds(), errs[len(errs)*95/100].Seconds(), errs[len(errs)-1].Seconds(), len(errs), broken)
	if median > time.Second {
		t.Errorf("the median error is %v, more than a second", median)
	}
}
