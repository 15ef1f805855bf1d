package safeat

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain/words"
)

// Verdict is the result in one word.
type Verdict string

// The verdicts.
const (
	Safe         Verdict = "now"
	Soon         Verdict = "soon"
	Undetermined Verdict = "undetermined"
)

// Report says from when on every resolver gives the new answer.
type Report struct {
	Verdict      Verdict   `json:"verdict"`
	At           time.Time `json:"safeAt"` // if Undetermined: for the resolvers that are known
	Latest       time.Time `json:"atLatest"`
	First        time.Time `json:"firstChange,omitzero"` // expiry of the first of the older answers that were seen
	Assumed      bool      `json:"assumed"`
	Summary      string    `json:"summary"`
	Slowest      *Bound    `json:"slowest,omitempty"` // the bound that decided
	Unseen       Part      `json:"unseen"`            // all caches that were not sampled
	Resolvers    []Part    `json:"resolvers"`
	Undetermined []string  `json:"undetermined,omitempty"`
	NotCovered   []string  `json:"notCovered"`
}

// Part is the result for one resolver.
type Part struct {
	Name   string     `json:"name"`
	Addr   netip.Addr `json:"addr,omitzero"`
	State  State      `json:"state"`
	At     time.Time  `json:"safeAt"`
	Latest time.Time  `json:"atLatest"`
	Held   time.Time  `json:"heldUntil,omitzero"` // latest expiry of the older answers that were seen there
	// Likely is Held without slack: a cache may drop an entry up to a second earlier or later.
	Likely       time.Time `json:"likelyUntil,omitzero"`
	Assumed      bool      `json:"assumed"`
	Caches       int       `json:"cachesSeen"` // at least so many caches answered
	Summary      string    `json:"summary"`
	Bounds       []Bound   `json:"bounds,omitempty"` // the latest first
	Undetermined []string  `json:"undetermined,omitempty"`
}

// notCovered lists caches that do not follow DNS TTLs.
func notCovered() []string {
	return []string{
		"browsers, operating systems and language runtimes keep answers by rules of their own",
		"home routers and forwarders may keep answers for a fixed time",
		"a resolver that cannot reach the zone's servers may serve old answers for as long as that lasts (RFC 8767)",
	}
}

// Compute computes from when on every resolver gives the new answer.
func Compute(f Facts) Report {
	f = f.normalized()
	r := Report{At: f.Now, Latest: f.Now, NotCovered: notCovered(), Resolvers: []Part{}}
	r.Unseen = f.part(Resolver{Name: "all other resolvers"})
	r.add(r.Unseen)
	for _, res := range f.Resolvers {
		p := f.part(res)
		r.Resolvers = append(r.Resolvers, p)
		if p.State == Filtered {
			continue // never shows the new answer
		}
		r.add(p)
		for _, s := range res.Samples {
			if s.State != Old && s.State != Negative {
				continue
			}
			end := s.Seen.Add(time.Duration(s.Left)*time.Second + tick)
			if r.First.IsZero() || end.Before(r.First) {
				r.First = end
			}
		}
	}
	r.conclude(f.Now)
	return r
}

func (r *Report) add(p Part) {
	if p.At.After(r.At) {
		r.At, r.Assumed = p.At, p.Assumed
		r.Slowest = &p.Bounds[0]
	}
	if p.Latest.After(r.Latest) {
		r.Latest = p.Latest
	}
	for _, c := range p.Undetermined {
		if c = p.Name + ": " + c; !slices.Contains(r.Undetermined, c) {
			r.Undetermined = append(r.Undetermined, c)
		}
	}
}

func (r *Report) conclude(now time.Time) {
	r.Assumed = r.Assumed || r.Latest.After(r.At)
	outdated, answered := 0, 0
	for _, p := range r.Resolvers {
		switch p.State {
		case Old, Negative, Stale:
			outdated++
			answered++
		case Current:
			answered++
		}
	}
	seen := fmt.Sprintf("%d of %d resolvers were seen with an older answer", outdated, answered)
	if answered == 0 {
		seen = "no resolver was seen with an answer"
	}
	switch {
	case len(r.Undetermined) > 0:
		r.Verdict = Undetermined
		r.Summary = fmt.Sprintf("It is not known when everyone sees the new answer (%s).",
			strings.Join(r.Undetermined, "; "))
	case r.At.After(now):
		r.Verdict = Soon
		r.Summary = fmt.Sprintf("Everyone sees the new answer by %s (in %s)%s; %s.", stamp(r.At), words.Length(r.At.Sub(now)),
			assumption(r.Assumed, r.At, r.Latest), seen)
	default:
		r.Verdict = Safe
		r.Summary = fmt.Sprintf("Everyone sees the new answer%s; %s.", assumption(r.Latest.After(now), r.At, r.Latest), seen)
	}
}

// assumption returns the part of a sentence that qualifies an assumed time.
func assumption(assumed bool, at, latest time.Time) string {
	switch {
	case !assumed:
		return ""
	case latest.After(at):
		return ", as far as is known, and by " + stamp(latest) + " at the latest"
	}
	return ", as far as is known"
}

// normalized sets the Seen and Since of each link, on which later steps rely.
func (f Facts) normalized() Facts {
	f.Links = slices.Clone(f.Links)
	for i := range f.Links {
		if f.Links[i].Seen.IsZero() {
			f.Links[i].Seen = f.Now
		}
		if l := &f.Links[i]; l.Since.IsZero() || l.Since.After(l.Seen) {
			l.Since = l.Seen
		}
	}
	return f
}

// part returns the result for r. A resolver without samples stands for all that were not sampled.
func (f Facts) part(r Resolver) Part {
	p := Part{Name: r.Name, Addr: r.Addr, At: f.Now, Latest: f.Now, State: r.overall()}
	p.Caches = f.caches(r.Samples)
	per := make([][]Bound, len(f.Links))
	for i, l := range f.Links {
		per[i] = f.bounds(&p, i, l, r)
		p.Bounds = append(p.Bounds, per[i]...)
	}
	p.Bounds = append(p.Bounds, f.delegations(r, per)...)
	slices.SortStableFunc(p.Bounds, func(a, b Bound) int { return b.At.Compare(a.At) })
	for _, b := range p.Bounds {
		if b.At.After(p.At) {
			p.At, p.Assumed = b.At, b.Assumed
		}
		if b.Latest.After(p.Latest) {
			p.Latest = b.Latest
		}
		// The same time may be known in one bound and assumed in another.
		if b.At.Equal(p.At) && !b.Assumed {
			p.Assumed = false
		}
	}
	p.Assumed = p.Assumed || p.Latest.After(p.At)
	p.conclude(f.Now)
	return p
}

// bounds returns the bounds of one link for r.
func (f Facts) bounds(p *Part, i int, l Link, r Resolver) []Bound {
	var out []Bound
	for _, s := range r.Samples {
		if s.Link != i {
			continue
		}
		if s.State == Stale {
			p.addUndetermined("it serves the old " + l.String() + " because it cannot reach the zone's servers")
		}
		b, ok := l.seen(s)
		if !ok {
			continue
		}
		out = append(out, b)
		if s.State != Failed && b.At.After(p.Held) {
			p.Held, p.Likely = b.At, b.At.Add(-tick)
		}
	}
	if l.Divided {
		p.addUndetermined("a server of the zone still gives the old " + l.String() + ", which any cache may fetch again")
	}
	unseen, unknown := l.unseen(r.Clamps, f.fallbackTTL(i), f.late(i))
	if unknown {
		p.addUndetermined("for how long the old " + l.String() + " may be kept is not known")
	}
	out = append(out, unseen...)
	if b, ok := f.lengthened(i, r, out); ok {
		out = append(out, b)
	}
	return out
}

func (p *Part) addUndetermined(why string) {
	if !slices.Contains(p.Undetermined, why) {
		p.Undetermined = append(p.Undetermined, why)
	}
}

// fallbackTTL returns the TTL to assume for older data with an unknown TTL: the longest remaining TTL that was seen,
// but at least the present TTL.
func (f Facts) fallbackTTL(i int) TTL {
	t := f.Links[i].TTL
	for _, r := range f.Resolvers {
		for _, s := range r.Samples {
			if s.Link == i && s.State == Old && s.Left >= t.seconds {
				t = Seconds(s.Left)
			}
		}
	}
	return t
}

// late reports whether any cache fetched an older version of a link after the change.
func (f Facts) late(i int) bool {
	return slices.ContainsFunc(f.Resolvers, func(r Resolver) bool {
		return slices.ContainsFunc(r.Samples, func(s Sample) bool { return s.Link == i && f.Links[i].late(s) })
	})
}

// lengthened returns the bound for the other caches behind an address if one of them keeps a link longer than any TTL
// allows.
func (f Facts) lengthened(i int, r Resolver, known []Bound) (Bound, bool) {
	l := f.Links[i]
	var out Bound
	for _, s := range r.Samples {
		b, ok := l.seen(s)
		if s.Link != i || !ok || s.State == Failed || len(l.Before) == 0 || l.late(s) {
			continue
		}
		for _, v := range l.Before {
			until := v.Until
			if until.IsZero() {
				until = l.Since
			}
			if at := until.Add(time.Duration(s.Left)*time.Second + tick + inFlight); at.After(b.At) {
				b.At, b.Latest, b.Assumed = at, at, true
			}
		}
		b.Because = "a cache there keeps " + l.String() + " longer than its TTL allows, and others there may, too"
		if b.At.After(out.At) {
			out = b
		}
	}
	longer := !slices.ContainsFunc(known, func(b Bound) bool { return !b.At.Before(out.At) })
	return out, longer && !out.At.IsZero()
}
