package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// cacheLines returns a line for each resolver. The most important states come first.
func cacheLines(f *explain.Facts, safe safeat.Report) (out []CacheLine) {
	for _, c := range explain.Assess(f) {
		l := CacheLine{Resolver: cmp.Or(c.Operator, c.ID), Addr: c.Addr.String(), Region: c.Region, State: c.State(),
			Why: c.NotAsked, NotAsked: c.NotAsked != "", NoVote: c.NoVote}
		for _, p := range safe.Resolvers {
			if p.Addr == c.Addr {
				l.Until, l.Likely, l.Caches = p.Held, p.Likely, p.Caches
			}
		}
		// Safe leaves out resolvers without a vote, so their times are computed separately.
		if c.NoVote && (l.State == safeat.Old || l.State == safeat.Negative) {
			p := explain.SafeAt(f, c)
			l.Until, l.Likely, l.Caches = p.Held, p.Likely, p.Caches
		}
		l.Answer, l.Why = deciding(c, l.State, l.Why)
		switch {
		case c.NoVote && c.Filters:
			l.Why = strings.TrimPrefix(l.Why+"; not counted: it filters", "; ")
		case c.NoVote:
			l.Why = strings.TrimPrefix(l.Why+"; not counted: answers may be changed on the network path", "; ")
		}
		if l.State == safeat.Old || l.State == safeat.Negative {
			l.Flush = c.Flush
		}
		out = append(out, l)
	}
	// Stable: resolvers with the same state keep the order of the list.
	slices.SortStableFunc(out, func(a, b CacheLine) int { return a.State.Compare(b.State) })
	return out
}

// state returns the state as shown. A resolver that was not queried is not silent.
func (c CacheLine) state() string {
	if c.NotAsked {
		return "not asked"
	}
	return string(c.State)
}

// guesses describes the inputs of a bound that may be assumptions.
var guesses = map[string]string{"changed": "that it was changed just now", "ttl": "the TTL before the change",
	"negativeTTL": "how long \"does not exist\" was remembered before the change"}

// basis says what determines when everyone sees the new answer, and lists the assumptions.
func basis(s *safeat.Report) string {
	b := s.Slowest
	if b == nil {
		return ""
	}
	text := " It takes until then because " + b.Because + "."
	var assumed []string
	for _, in := range b.Inputs {
		if words := guesses[in.Name]; in.Assumed && words != "" {
			assumed = append(assumed, words)
		}
	}
	if len(assumed) > 0 {
		text += " Assumed: " + words.List(assumed) + "."
	}
	return text
}

// rcodeText describes a reply without records.
func rcodeText(rcode string) string {
	switch rcode {
	case "NOERROR":
		return "no such record"
	case "NXDOMAIN":
		return "does not exist"
	}
	return rcode
}

// deciding returns the answer that decides the state of a resolver, and the reason that the resolver gives.
func deciding(c explain.Assessment, state safeat.State, why string) (answer, reason string) {
	for _, s := range c.Answers {
		if s.State != state {
			continue
		}
		answer = rcodeText(s.Rcode)
		if len(s.Sets) > 0 {
			answer = answerText(s.Sets)
		}
		return answer, cmp.Or(strings.Join(words.Each(s.Errors, edeText), "; "), why)
	}
	return "", why
}
