package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// notIntercepted is check VAN01: Queries from here reach the servers that they are sent to. If it fails, Judge turns
// every other check that depends on DNS replies into an unknown result.
func notIntercepted(f *explain.Facts) []explain.Finding {
	here := cmp.Or(f.Vantage.Name, "here")
	switch p := f.Vantage.Intercepted; p.Fact {
	case explain.Yes:
		return []explain.Finding{seen(
			fail("", explain.You, here,
				"A device on the network path answers DNS queries instead of the servers%s. The replies seen from here are "+
					"not those of the servers.", detail(p)), p.Evidence)}
	case explain.No:
		return pass(here, "Queries reach the servers that they are sent to.")
	case explain.Unknown:
		return unknown(here, "Whether a device on the network path answers instead of the servers could not be determined.")
	}
	return nil
}

// notFiltered is check VAN02: No resolver filters the name. The owner of the name cannot repair it. It is reported
// because people otherwise wait for a cache that never changes.
func notFiltered(f *explain.Facts) []explain.Finding {
	name, answered := text(f.Name), false
	var out []explain.Finding
	for _, c := range explain.Assess(f) {
		answered = answered || in(c, safeat.Current, safeat.Old, safeat.Negative, safeat.Stale)
		says := slices.ContainsFunc(c.Samples, explain.Sample.SaysFiltered)
		if !says && !in(c, safeat.Filtered) {
			continue
		}
		if !says && c.NoVote && !c.Filters && suspected(c) {
			continue // a device on the path may have created it, so it does not count
		}
		_, evidence := until(f, []explain.Assessment{c}, safeat.Filtered)
		x := fail("", explain.Resolver, cache(c),
			"%s filters %s on purpose. Its users do not get the answer, and waiting does not help.", cache(c), name)
		if !says && suspected(c) {
			x.Words = fmt.Sprintf("%s has another answer for %s than its authority. Because it filters, this is either a "+
				"filtered or an older answer.", cache(c), name)
			x.Fix = "Scan again when the TTL has passed: an older answer is gone then. If the answer stays, ask the " +
				"operator to remove the name from the blocklist."
		}
		out = append(out, seen(x, evidence))
	}
	switch {
	case len(out) > 0:
		return out
	case !answered:
		return unknown(name, "No resolver gave an answer for %s.", name)
	}
	return pass(name, "No resolver that was asked filters %s.", name)
}

// suspected reports whether all filtered answers of a resolver count as filtered only because it is known to filter.
// Nobody has seen the filter in that case, so the words of the finding are careful.
func suspected(c explain.Assessment) bool {
	return !slices.ContainsFunc(c.Answers, func(s explain.Assessed) bool {
		return s.State == safeat.Filtered && !s.Suspected()
	})
}

// clock is check VAN03: The clock of this machine is right. Certificates, signatures and the times of a change are
// judged by this clock.
func clock(f *explain.Facts) []explain.Finding {
	// Five seconds are more than the network and the whole seconds of HTTP dates can explain.
	const most = 5 * time.Second
	skew := f.Vantage.Skew
	switch {
	case !f.Vantage.SkewKnown:
		return nil // no other clock was seen
	case skew > most:
		return []explain.Finding{fail("", explain.You, "clock", "The clock of this machine is %s ahead.", words.Length(skew))}
	case skew < -most:
		return []explain.Finding{fail("", explain.You, "clock", "The clock of this machine is %s behind.",
			words.Length(-skew))}
	}
	return pass("clock", "The clock of this machine is right.")
}

// quorum is the number of resolvers that must have answered for a verdict about all resolvers.
const quorum = 3

// enough is check VAN04: Enough answers arrived for a verdict. Its result is unknown and never a failure: too few
// answers say something about this run, and nothing about the name.
func enough(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	if len(f.Unfinished) > 0 {
		return unknown(name, "The limit of %s was reached before all queries were sent. Their results are unknown.",
			words.Some(f.Unfinished))
	}
	if f.Kind != explain.Compare {
		good, all := 0, 0
		for _, z := range judged(f) {
			t := tallyOf(f, z.Name)
			good, all = good+t.good+t.lame+t.down, all+len(t.all)-t.other
		}
		// At least half of the servers must have a clear result.
		if 2*good < all {
			return unknown(name, "Only %d of %s gave a usable reply.", good, words.Count(all, "server", "servers"))
		}
		return pass(name, "%d of %s gave a usable reply.", good, words.Count(all, "server", "servers"))
	}
	// A comparison needs answers of resolvers, not of servers.
	asked, answered := 0, 0
	for _, c := range explain.Assess(f) {
		if c.NotAsked != "" {
			continue
		}
		asked++
		if in(c, safeat.Current, safeat.Old, safeat.Negative, safeat.Stale, safeat.Filtered) {
			answered++
		}
	}
	switch {
	case len(f.Caches) == 0:
		return unknown(name, "No resolver was asked.")
	case asked == 0:
		return nil // not queried on purpose: NAM01 says why
	// Three answers show more than the cache of one operator. With a list of one or two resolvers, all must answer.
	case answered < min(quorum, asked) || 2*answered < asked:
		return unknown(name, "Only %d of %s answered; that is too few for a verdict.", answered,
			words.Count(asked, "resolver", "resolvers"))
	}
	return pass(name, "%d of %s answered.", answered, words.Count(asked, "resolver", "resolvers"))
}
