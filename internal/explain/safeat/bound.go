package safeat

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nameplane/nameplane/internal/explain/words"
)

// Bound is one reason to wait: before At, it may keep some resolver from giving the new answer.
type Bound struct {
	At      time.Time `json:"at"`
	Latest  time.Time `json:"atLatest"` // equal to At, or later if At rests on an assumption
	Link    string    `json:"link"`
	Because string    `json:"because"`
	Assumed bool      `json:"assumed"`
	Inputs  []Input   `json:"inputs"`
}

// Input is one value that a bound was computed from.
type Input struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Assumed bool   `json:"assumed"` // default for an unknown fact
}

// span is how long something is cached.
type span struct {
	likely, worst time.Duration
	assumed       bool
	unknown       bool // there is no basis for likely
	inputs        []Input
}

func (s *span) note(name string, d time.Duration, assumed bool) {
	s.inputs = append(s.inputs, Input{name, strconv.FormatInt(int64(d/time.Second), 10), assumed})
	s.assumed = s.assumed || assumed
}

// spanOf returns how long a resolver caches something with a TTL. If the TTL is unknown, fallback is the likely
// value.
func spanOf(name string, ttl, fallback, limit TTL) span {
	var s span
	switch {
	case ttl.known:
		s.likely, s.worst = ttl.duration(), ttl.duration()
		s.note(name, s.likely, false)
	case fallback.known:
		s.likely, s.worst = fallback.duration(), 1<<62
		s.note(name, s.likely, true)
	default:
		s.likely, s.worst, s.unknown = 1<<62, 1<<62, true
	}
	assumed := !limit.known
	if assumed {
		limit = Seconds(uint32(week / time.Second))
	}
	if s.likely > limit.duration() {
		s.likely = limit.duration()
		s.note("clamp", s.likely, assumed)
	}
	s.worst = min(s.worst, limit.duration())
	return s
}

// versionSpan returns how long a resolver caches version v of l. fallback replaces the TTL of data if it is unknown.
func (c Clamps) versionSpan(l Link, v Version, fallback TTL) span {
	if !v.Absent {
		return spanOf("ttl", v.TTL, fallback, c.Positive)
	}
	s := spanOf("negativeTTL", l.Denial.TTL, Seconds(uint32(defaultNegative/time.Second)), c.Negative)
	if l.Denial.Ranges == RangesNone {
		return s
	}
	nsec := c.rangeSpan(l)
	if l.Denial.Ranges == RangesUnknown {
		// Most zones have no relevant ranges, so only the worst case includes them.
		if nsec.worst > s.likely {
			s.note("nsecTTL", 0, true)
		}
		s.worst = max(s.worst, nsec.worst)
		return s
	}
	return longer(nsec, s)
}

// rangeSpan returns how long a resolver may deny names with a cached NSEC record. Zones older than RFC 9077 give NSEC
// records their own TTL. Resolvers limit them either as positive or as negative data, so the larger limit counts.
func (c Clamps) rangeSpan(l Link) span {
	limit := c.Positive
	if !c.Negative.known || limit.known && c.Negative.seconds > limit.seconds {
		limit = c.Negative
	}
	fallback := l.Denial.TTL
	if !fallback.known {
		fallback = Seconds(uint32(defaultNegative / time.Second))
	}
	return spanOf("nsecTTL", l.Denial.NSEC, fallback, limit)
}

// versions returns the versions that caches may still hold; if nothing is known, all possible ones.
func (l Link) versions() []Version {
	switch {
	case len(l.Before) > 0:
		return l.Before
	case l.Unchanged:
		return nil
	}
	return []Version{{}, {Absent: true}}
}

// String returns the owner without the final dot, and the type.
func (l Link) String() string { return words.Name(l.Owner) + " " + l.Type.String() }

// unseen returns the bounds for caches that were not sampled. fallback replaces an unknown TTL of older data. late
// says that a cache fetched an older version after the given time of the change.
func (l Link) unseen(c Clamps, fallback TTL, late bool) (bounds []Bound, unknown bool) {
	for _, v := range l.versions() {
		until, guessed := v.Until, false
		if until.IsZero() {
			until, guessed = l.Since, true
		}
		if late && until.Before(l.Seen) {
			until, guessed = l.Seen, true
		}
		s := c.versionSpan(l, v, fallback)
		b := Bound{
			At:      until.Add(s.likely + tick + inFlight),
			Latest:  until.Add(s.worst + tick + inFlight),
			Link:    l.String(),
			Assumed: s.assumed || guessed || len(l.Before) == 0,
			Inputs:  append([]Input{{"changed", stamp(until), guessed}}, s.inputs...),
		}
		b.Inputs = append(b.Inputs, slackOf(tick+inFlight))
		if s.unknown {
			b.At, b.Assumed, unknown = b.Latest, true, true
		}
		b.Because = l.because(v, until, s)
		bounds = append(bounds, b)
	}
	return bounds, unknown
}

func (l Link) because(v Version, until time.Time, s span) string {
	what := "an older " + l.String()
	if v.Absent {
		what = "that there is no " + l.String()
	}
	if s.unknown {
		return fmt.Sprintf("a cache may have learned %s until %s, and for how long it may keep that is not known", what,
			stamp(until))
	}
	if v.Absent && l.Denial.Ranges == RangesNSEC {
		return fmt.Sprintf("even a resolver that was never asked for it may conclude %s, "+
			"from an NSEC range received before %s and cached for %s", what, stamp(until), words.Length(s.likely))
	}
	return fmt.Sprintf("a cache may have learned %s until %s, and keep it for %s", what, stamp(until),
		words.Length(s.likely))
}

// seen returns the bound of one sample, if it sets one.
func (l Link) seen(s Sample) (Bound, bool) {
	b := Bound{Link: l.String(), Inputs: []Input{{"seen", stamp(s.Seen), false}}}
	left := time.Duration(s.Left) * time.Second
	switch s.State {
	case Old:
		b.Because = fmt.Sprintf("a cache held an older %s, for %s after %s", l, words.Length(left), stamp(s.Seen))
	case Negative:
		b.Because = fmt.Sprintf("a cache held that there is no %s, for %s after %s", l, words.Length(left), stamp(s.Seen))
	case Failed:
		left = failureTTL
		b.Assumed = true
		b.Because = fmt.Sprintf("the resolver failed at %s, and may remember that for %s", stamp(s.Seen), words.Length(left))
	default:
		return Bound{}, false
	}
	b.At = s.Seen.Add(left + tick)
	b.Latest = b.At
	b.Inputs = append(b.Inputs, Input{"remaining", strconv.FormatInt(int64(left/time.Second), 10), b.Assumed},
		slackOf(tick))
	return b, true
}

// late reports whether s proves that its cache fetched an older version after the change: no version could have been
// cached until then. Clamps would only shorten that time, so they are ignored. A cache with more left than any TTL
// lengthens TTLs.
func (l Link) late(s Sample) bool {
	if s.State != Old && s.State != Negative || len(l.Before) == 0 {
		return false
	}
	left, lengthens := time.Duration(s.Left)*time.Second, true
	for _, v := range l.Before {
		ttl := v.TTL
		if v.Absent {
			ttl = l.Denial.TTL
			if l.Denial.NSEC.known && l.Denial.NSEC.seconds > ttl.seconds {
				ttl = l.Denial.NSEC
			}
		}
		if v.Until.IsZero() || !ttl.known || !s.Seen.Add(left).After(v.Until.Add(ttl.duration()+tick+inFlight)) {
			return false
		}
		lengthens = lengthens && left > ttl.duration()
	}
	return !lengthens
}

// slackOf returns the input for the time added for whole seconds and for answers in flight.
func slackOf(d time.Duration) Input {
	return Input{"slack", strconv.FormatInt(int64(d/time.Second), 10), false}
}

// stamp formats a time in whole seconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
