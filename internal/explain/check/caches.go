package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// cache returns the operator and the address of a resolver.
func cache(c explain.Assessment) string {
	return fmt.Sprintf("%s (%s)", cmp.Or(c.Operator, c.ID, "the resolver"), c.Addr)
}

// caches lists resolvers.
func caches(all []explain.Assessment) string { return words.Some(words.Each(all, cache)) }

// in reports whether an answer of a resolver has one of the states. Queries with validation disabled (CD) do not count:
// they only show whether DNSSEC is the problem.
func in(c explain.Assessment, states ...safeat.State) bool {
	return slices.ContainsFunc(c.Answers, func(s explain.Assessed) bool {
		return !s.NoCheck && slices.Contains(states, s.State)
	})
}

// voting returns the resolvers whose answers count. Answers that a device on the path may change do not count.
func voting(f *explain.Facts) []explain.Assessment {
	return only(explain.Assess(f), func(c explain.Assessment) bool {
		return !c.NoVote && in(c, safeat.Current, safeat.Old, safeat.Negative, safeat.Stale)
	})
}

// until returns when the last of some resolvers drops an answer with one of the states, as far as the replies show it.
func until(f *explain.Facts, of []explain.Assessment, states ...safeat.State) (end time.Time, evidence []int) {
	for _, c := range of {
		for _, s := range c.Answers {
			if !slices.Contains(states, s.State) {
				continue
			}
			// The TTL counts from the moment of the reply, and not from the beginning of the scan: a scan takes up to 30 s.
			if e := f.At.Add(s.At + time.Duration(s.Left)*time.Second); e.After(end) {
				end = e
			}
			evidence = append(evidence, s.Evidence...)
		}
	}
	return end, evidence
}

// everyone returns when everyone sees the answer of the authority, and not before least.
func everyone(f *explain.Facts, least time.Time) time.Time {
	if safe := explain.Safe(f); safe.Verdict != safeat.Undetermined && safe.At.After(least) {
		return safe.At
	}
	return least
}

// flush adds the web pages that can empty the caches to the fix.
func flush(x explain.Finding, of []explain.Assessment, fix string) explain.Finding {
	var pages []string
	for _, c := range of {
		// Several resolvers of one operator share a page.
		if c.Flush != "" && !slices.Contains(pages, c.Flush) {
			pages = append(pages, c.Flush)
		}
	}
	if len(pages) > 0 {
		x.Fix = fix + " Caches can be emptied at " + words.Some(pages) + "."
	}
	return x
}

// noneOld is check TTL02: No resolver holds an old answer.
func noneOld(f *explain.Facts) []explain.Finding {
	return late(f, safeat.Old, "%d of %s %s the old answer for %s, until %s (in %s) at the latest: %s.",
		"No resolver that was asked holds an old answer for %s.")
}

// noneNegative is check TTL03: No resolver remembers that the name does not exist.
func noneNegative(f *explain.Facts) []explain.Finding {
	if !slices.ContainsFunc(f.Outcomes, func(o explain.Outcome) bool { return o.Result == iterate.Answer }) {
		return nil // a denial of what the authority does not have is right
	}
	return late(f, safeat.Negative, "%d of %s still %s that %s does not exist, until %s (in %s) at the latest: %s.",
		"No resolver that was asked remembers that %s does not exist.")
}

// late checks for resolvers that hold an answer with an older state.
func late(f *explain.Facts, state safeat.State, bad, good string) []explain.Finding {
	name, all := text(f.Name), voting(f)
	of := only(all, func(c explain.Assessment) bool { return in(c, state) })
	switch {
	case len(all) == 0:
		return unknown(name, "No resolver gave an answer for %s that can be compared.", name)
	case len(of) == 0:
		return pass(name, good, name)
	}
	end, evidence := until(f, of, state)
	verbs := map[safeat.State][2]string{safeat.Old: {"holds", "hold"}, safeat.Negative: {"remembers", "remember"}}[state]
	x := fail("", explain.Nobody, name, bad, len(of), words.Count(len(all), "resolver", "resolvers"),
		words.Verb(len(of), verbs[0], verbs[1]), name,
		words.By(end, f.At), words.Length(end.Sub(f.At)), caches(of))
	// The resolvers that were not asked may hold the answer for longer than those that were.
	x.Visible = everyone(f, end)
	x = flush(x, of, fmt.Sprintf("Wait until %s.", words.By(end, f.At)))
	return []explain.Finding{seen(x, evidence)}
}

// noneStale is check TTL08: No resolver serves expired answers.
func noneStale(f *explain.Facts) []explain.Finding {
	name, all := text(f.Name), voting(f)
	// Only resolvers that say so count (RFC 8914 §4.4 and §4.20). Other expired answers cannot be distinguished from fresh
	// ones.
	of := only(all, func(c explain.Assessment) bool { return slices.ContainsFunc(c.Samples, explain.Sample.SaysStale) })
	switch {
	case len(all) == 0:
		return unknown(name, "No resolver gave an answer for %s that can be compared.", name)
	case len(of) == 0:
		return pass(name, "No resolver that was asked serves an expired answer for %s.", name)
	}
	_, evidence := until(f, of, safeat.Stale)
	x := fail("", explain.DNSHost, name,
		"%s %s an expired answer for %s, because the resolver could not reach the zone's servers.", caches(of),
		words.Verb(len(of), "serves", "serve"), name)
	return []explain.Finding{seen(x, evidence)}
}

// authorityTTL returns the longest TTL that the authority gives a set, now or at an earlier scan.
func authorityTTL(f *explain.Facts, set explain.Set) (most uint32, ok bool) {
	take := func(sets []explain.Set) {
		for _, s := range sets {
			if s.Name == set.Name && s.Type == set.Type {
				most, ok = max(most, s.TTL), true
			}
		}
	}
	for _, a := range f.Answers {
		take(a.Sets)
	}
	for _, o := range f.Outcomes {
		take(o.Sets)
	}
	if !ok {
		return 0, false
	}
	// A resolver may hold an answer from before the TTL was lowered, so earlier TTLs count, too.
	for _, p := range f.Past {
		take(p.Sets)
	}
	return most, true
}

// noneLonger is check TTL09: No resolver keeps answers for longer than their TTL.
func noneLonger(f *explain.Facts) []explain.Finding {
	name, compared := text(f.Name), false
	var out []explain.Finding
	for _, c := range voting(f) {
		for _, s := range c.Answers {
			for _, set := range s.Sets {
				most, ok := authorityTTL(f, set)
				// Only current answers count: an older version may have had a longer TTL.
				if !ok || s.State != safeat.Current {
					continue
				}
				compared = true
				if set.TTL > most && !slices.ContainsFunc(out, func(x explain.Finding) bool { return x.Subject == cache(c) }) {
					x := fail("", explain.Resolver, cache(c), "%s keeps %s %s for %s, longer than its TTL of %s at the authority.",
						cache(c), text(set.Name), set.Type, words.Seconds(set.TTL), words.Seconds(most))
					out = append(out, seen(x, s.Evidence))
				}
			}
		}
	}
	switch {
	case len(out) > 0:
		return out
	case !compared:
		return unknown(name, "No resolver gave an answer for %s whose TTL can be compared.", name)
	}
	return pass(name, "No resolver that was asked keeps %s for longer than its TTL.", name)
}

// consistent is check TTL10: Each resolver always gives the same answer.
func consistent(f *explain.Facts) []explain.Finding {
	name, several := text(f.Name), false
	var out []explain.Finding
	for _, c := range voting(f) {
		several = several || len(c.Samples) > 1
		// Different states at one address show several caches.
		states := only([]safeat.State{safeat.Current, safeat.Old, safeat.Negative}, func(s safeat.State) bool {
			return in(c, s)
		})
		if len(states) < 2 {
			continue
		}
		end, evidence := until(f, []explain.Assessment{c}, safeat.Old, safeat.Negative)
		x := fail("", explain.Nobody, cache(c),
			"Several caches reply behind %s, and not all have the new answer for %s: the answer may change with each query "+
				"until %s.", cache(c), name, words.By(end, f.At))
		x.Visible = end
		out = append(out, seen(x, evidence))
	}
	switch {
	case len(out) > 0:
		return out
	case !several:
		return nil // each was queried at most once
	}
	return pass(name, "Each resolver that was asked always gave the same answer.")
}

// ownResolver is check TTL11: The resolver of this machine gives the answer of the authority.
func ownResolver(f *explain.Facts) []explain.Finding {
	name := text(f.Name)
	var all []explain.Finding
	for _, c := range explain.Assess(f) {
		if !c.Local {
			continue
		}
		end, evidence := until(f, []explain.Assessment{c}, safeat.Old, safeat.Negative)
		left := ""
		if !end.IsZero() {
			left = fmt.Sprintf(", until %s (in %s)", words.By(end, f.At), words.Length(end.Sub(f.At)))
		}
		x := fail("", explain.You, cache(c), "")
		x.Visible = end
		switch {
		case in(c, safeat.Old):
			x.Words = fmt.Sprintf("The resolver of this machine, %s, holds an old answer for %s%s. The cause is your network, "+
				"not the DNS.", cache(c), name, left)
		case in(c, safeat.Negative):
			x.Words = fmt.Sprintf("The resolver of this machine, %s, remembers that %s does not exist%s. The cause is your "+
				"network, not the DNS.", cache(c), name, left)
		case in(c, safeat.Stale):
			x.Words = fmt.Sprintf("The resolver of this machine, %s, serves an expired answer for %s: it cannot reach the "+
				"zone's servers.", cache(c), name)
		case in(c, safeat.Filtered):
			continue // VAN02
		case in(c, safeat.Current):
			all = append(all, pass(cache(c), "The resolver of this machine, %s, gives the answer of the authority.",
				cache(c))...)
			continue
		default:
			all = append(all, unknown(cache(c), "The resolver of this machine, %s, gave no answer for %s that can be compared.",
				cache(c), name)...)
			continue
		}
		all = append(all, seen(x, evidence))
	}
	return worst(all)
}
