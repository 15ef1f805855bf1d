package safeat

import (
	"fmt"
	"strconv"
	"time"

	"github.com/nameplane/nameplane/internal/explain/words"
)

// Bound is one reason to wait: until At, nobody can be sure of the new answer because of it.
type Bound struct {
	At      time.Time `json:"at"`
	Latest  time.Time `json:"atLatest"` // not before At; later where At rests on an assumption that may be wrong
	Link    string    `json:"link"`
	Because string    `json:"because"`
	Assumed bool      `json:"assumed"`
	Inputs  []Input   `json:"inputs"`
}

// Input is one value that a bound was computed from.
type Input struct {
	Name    string `json:"name"`
	Value   string `json:"value"`
	Assumed bool   `json:"assumed"` // stands for a fact that was not known
}

// span is how long something is kept.
type span struct {
	likely, worst time.Duration
	assumed       bool
	unknown       bool // there is nothing that likely could be taken from
	inputs        []Input
}

func (s *span) note(name string, d time.Duration, assumed bool) {
	s.inputs = append(s.inputs, Input{name, strconv.FormatInt(int64(d/time.Second), 10), assumed})
	s.assumed = s.assumed || assumed
}

// keep is how long a resolver keeps what has ttl, or instead of an unknown ttl, what is likely.
func keep(name string, ttl, instead, limit TTL) span {
	var s span
	switch {
	case ttl.known:
		s.likely, s.worst = ttl.duration(), ttl.duration()
		s.note(name, s.likely, false)
	case instead.known:
		s.likely, s.worst = instead.duration(), 1<<62
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

// keepVersion is how long a resolver keeps v of l; instead is taken for the TTL of data when it is not known.
func (c Clamps) keepVersion(l Link, v Version, instead TTL) span {
	if !v.Absent {
		return keep("ttl", v.TTL, instead, c.Positive)
	}
	s := keep("negativeTTL", l.Denial.TTL, Seconds(uint32(unreadDenial/time.Second)), c.Negative)
	if l.Denial.Ranges == RangesNone {
		return s
	}
	nsec := c.keepRange(l)
	if l.Denial.Ranges == RangesUnknown {
		// Most zones have none that matter, so only the worst case counts them.
		if nsec.worst > s.likely {
			s.note("nsecTTL", 0, true)
		}
		s.worst = max(s.worst, nsec.worst)
		return s
	}
	return longer(nsec, s)
}

// keepRange is how long a resolver may deny names by an NSEC record that it has. Zones older than RFC 9077 give these a
// TTL of their own; whether a resolver limits them as positive or as negative data is its own affair, so the longer counts.
func (c Clamps) keepRange(l Link) span {
	limit := c.Positive
	if !c.Negative.known || limit.known && c.Negative.seconds > limit.seconds {
		limit = c.Negative
	}
	instead := l.Denial.TTL
	if !instead.known {
		instead = Seconds(uint32(unreadDenial / time.Second))
	}
	return keep("nsecTTL", l.Denial.NSEC, instead, limit)
}

// versions are those that caches may still hold; of a link of which nothing is known, all that is possible.
func (l Link) versions() []Version {
	switch {
	case len(l.Before) > 0:
		return l.Before
	case l.Unchanged:
		return nil
	}
	return []Version{{}, {Absent: true}}
}

// String is the link as people write it, without the dot of the root.
func (l Link) String() string { return words.Name(l.Owner) + " " + l.Type.String() }

// unseen are the bounds for caches that nobody looked into. instead is taken for the TTL of older data where that is not
// known; late says that a cache was found to have fetched an older version after the moment that is given for the change.
func (l Link) unseen(c Clamps, instead TTL, late bool) (bounds []Bound, unknown bool) {
	for _, v := range l.versions() {
		until, guessed := v.Until, false
		if until.IsZero() {
			until, guessed = l.Since, true
		}
		if late && until.Before(l.Seen) {
			until, guessed = l.Seen, true
		}
		s := c.keepVersion(l, v, instead)
		b := Bound{
			At:      until.Add(s.likely + tick + flight),
			Latest:  until.Add(s.worst + tick + flight),
			Link:    l.String(),
			Assumed: s.assumed || guessed || len(l.Before) == 0,
			Inputs:  append([]Input{{"changed", stamp(until), guessed}}, s.inputs...),
		}
		b.Inputs = append(b.Inputs, slackOf(tick+flight))
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
		return fmt.Sprintf("a cache may have learned %s until %s, and for how long it may keep that is not known", what, stamp(until))
	}
	if v.Absent && l.Denial.Ranges == RangesNSEC {
		return fmt.Sprintf("even a resolver that was never asked may conclude %s, from a range it was told before %s and keeps for %s", what, stamp(until), words.Length(s.likely))
	}
	return fmt.Sprintf("a cache may have learned %s until %s, and keep it for %s", what, stamp(until), words.Length(s.likely))
}

// seen is the bound that one sample sets, if it does.
func (l Link) seen(s Sample) (Bound, bool) {
	b := Bound{Link: l.String(), Inputs: []Input{{"seen", stamp(s.Seen), false}}}
	left := time.Duration(s.Left) * time.Second
	switch s.State {
	case Old:
		b.Because = fmt.Sprintf("a cache held an older %s, for %s after %s", l, words.Length(left), stamp(s.Seen))
	case Negative:
		b.Because = fmt.Sprintf("a cache held that there is no %s, for %s after %s", l, words.Length(left), stamp(s.Seen))
	case Failed:
		left = failure
		b.Assumed = true
		b.Because = fmt.Sprintf("the resolver failed at %s, and may remember that for %s", stamp(s.Seen), words.Length(left))
	default:
		return Bound{}, false
	}
	b.At = s.Seen.Add(left + tick)
	b.Latest = b.At
	b.Inputs = append(b.Inputs, Input{"remaining", strconv.FormatInt(int64(left/time.Second), 10), b.Assumed}, slackOf(tick))
	return b, true
}

// late reports whether s shows that its cache fetched an older version after the change: no version could have been kept
// until then. Clamps only make that plainer, so they are left out; a cache that has more than any TTL lengthens them.
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
		if v.Until.IsZero() || !ttl.known || !s.Seen.Add(left).After(v.Until.Add(ttl.duration()+tick+flight)) {
			return false
		}
		lengthens = lengthens && left > ttl.duration()
	}
	return !lengthens
}

// slackOf shows what was added so that whole seconds and answers on their way break no bound.
func slackOf(d time.Duration) Input {
	return Input{"slack", strconv.FormatInt(int64(d/time.Second), 10), false}
}

// stamp is a moment as people and JSON read it, in whole seconds.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
