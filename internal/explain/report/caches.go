package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/explain/words"
)

// telling are the states by how much they interest who waits for a change, the most first.
var telling = []safeat.State{safeat.Negative, safeat.Old, safeat.Stale, safeat.Failed, safeat.Filtered, safeat.Silent, safeat.Current}

// cacheLines are the resolvers in words, those that differ first.
func cacheLines(f *explain.Facts, safe safeat.Report) (out []CacheLine) {
	for _, c := range explain.Assess(f) {
		l := CacheLine{Resolver: cmp.Or(c.Operator, c.ID), Addr: c.Addr.String(), Region: c.Region, State: stateOf(c), Why: c.NotAsked, NotAsked: c.NotAsked != "", NoVote: c.NoVote}
		for _, p := range safe.Resolvers {
			if p.Addr == c.Addr {
				l.State, l.Until, l.Likely, l.Caches = p.State, p.Held, p.Likely, p.Caches
			}
		}
		if c.NoVote && (l.State == safeat.Old || l.State == safeat.Negative) {
			p := explain.SafeAt(f, c)
			l.Until, l.Likely, l.Caches = p.Held, p.Likely, p.Caches
		}
		l.Answer, l.Why = said(c, l.State, l.Why)
		switch {
		case c.NoVote && c.Filters:
			l.Why = strings.TrimPrefix(l.Why+"; not counted: it filters", "; ")
		case c.NoVote:
			l.Why = strings.TrimPrefix(l.Why+"; not counted: answers from there may be altered on the way", "; ")
		}
		if l.State == safeat.Old || l.State == safeat.Negative {
			l.Flush = c.Flush
		}
		out = append(out, l)
	}
	slices.SortStableFunc(out, func(a, b CacheLine) int {
		return cmp.Compare(slices.Index(telling, a.State), slices.Index(telling, b.State))
	})
	return out
}

// state is the state in a word. Who was not asked did not keep silent.
func (c CacheLine) state() string {
	if c.NotAsked {
		return "not asked"
	}
	return string(c.State)
}

// guesses are inputs of a bound that may have had to be assumed, in words.
var guesses = map[string]string{"changed": "that it was changed just now", "ttl": "the TTL of before", "negativeTTL": "for how long \"does not exist\" was remembered before"}

// restsOn is what decided when everyone sees the new answer, and what had to be assumed for it.
func restsOn(s *safeat.Report) string {
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

// stateOf is the most telling state that a resolver was seen in.
func stateOf(c explain.Assessment) safeat.State {
	for _, state := range telling {
		if slices.ContainsFunc(c.Answers, func(s explain.Assessed) bool { return s.State == state }) {
			return state
		}
	}
	return safeat.Silent
}

// rcodeText is a reply without records in words.
func rcodeText(rcode string) string {
	switch rcode {
	case "NOERROR":
		return "no such record"
	case "NXDOMAIN":
		return "does not exist"
	}
	return rcode
}

// said is the answer that put a resolver into its state, and what it says about itself.
func said(c explain.Assessment, state safeat.State, why string) (answer, reason string) {
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
