package safeat_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// clone copies everything that the mutations below change.
func clone(f safeat.Facts) safeat.Facts {
	f.Links, f.Resolvers = slices.Clone(f.Links), slices.Clone(f.Resolvers)
	for i := range f.Links {
		f.Links[i].Before = slices.Clone(f.Links[i].Before)
	}
	for i := range f.Resolvers {
		f.Resolvers[i].Samples = slices.Clone(f.Resolvers[i].Samples)
	}
	return f
}

// withDelegation adds the NS sets and the DS of the zone, changed or not.
func (m *model) withDelegation() {
	left := m.rnd.IntN(2) == 0
	for _, role := range []safeat.Role{safeat.ParentNS, safeat.ChildNS, safeat.DS} {
		l := safeat.Link{Owner: dnsname.MustParse("example.org"), Type: rr.TypeNS, Role: role, TTL: m.know(m.ttl()), Seen: t0,
			OldServersUpdated: left}
		l.Denial = safeat.Denial{TTL: m.know(m.ttl()), Ranges: safeat.RangesNone}
		if l.Unchanged = m.rnd.IntN(3) == 0; !l.Unchanged {
			l.Before = []safeat.Version{{Until: t0.Add(-time.Duration(m.rnd.IntN(4000)) * time.Second), TTL: m.know(m.ttl()),
				Absent: m.rnd.IntN(4) == 0}}
		}
		m.facts.Links = append(m.facts.Links, l)
	}
}

// forget removes one fact, and returns its name.
func (m *model) forget(f *safeat.Facts) string {
	l := &f.Links[m.rnd.IntN(len(f.Links))]
	r := &f.Resolvers[m.rnd.IntN(len(f.Resolvers))]
	switch m.rnd.IntN(8) {
	case 0:
		if len(l.Before) > 0 {
			l.Before[m.rnd.IntN(len(l.Before))].TTL = safeat.TTL{}
		}
		return "a version's TTL"
	case 1:
		if len(l.Before) > 0 {
			l.Before[m.rnd.IntN(len(l.Before))].Until = time.Time{}
		}
		return "the moment of a change"
	case 2:
		l.Before, l.Unchanged = nil, false
		return "all that was before"
	case 3:
		l.Denial.TTL = safeat.TTL{}
		return "the negative TTL"
	case 4:
		l.Denial.Ranges = safeat.RangesUnknown
		return "whether there are ranges"
	case 5:
		l.Denial.NSEC = safeat.TTL{}
		return "the NSEC TTL"
	case 6:
		r.Clamps = safeat.Clamps{}
		return "the clamps"
	}
	l.OldServersUpdated = false
	return "what left servers do"
}

func TestUnknownIsNeverEarlier(t *testing.T) {
	for seed := range uint64(runs / 5) {
		m := newModel(seed)
		n := len(m.facts.Resolvers)
		m.withDelegation()
		full := safeat.Compute(m.facts)
		f := clone(m.facts)
		var what []string
		for range 1 + m.rnd.IntN(4) {
			what = append(what, m.forget(&f))
		}
		got := safeat.Compute(f)
		for ri := range n {
			p, was := got.Resolvers[ri], full.Resolvers[ri]
			if p.Latest.Before(was.At) {
				t.Fatalf("seed %d: without %q %s is new by %v at the latest, with them by %v", seed, what, p.Name, p.Latest, was.At)
			}
			if truth := m.truth(ri); !p.Assumed && p.At.Before(truth) {
				t.Fatalf("seed %d: without %q %s is new by %v without an assumption; it is by %v", seed, what, p.Name, p.At, truth)
			}
			if !p.Assumed && !p.At.Equal(p.Latest) {
				t.Fatalf("seed %d: %s has two moments, %v and %v, and no assumption", seed, p.Name, p.At, p.Latest)
			}
		}
		if got.Latest.Before(full.At) || got.At.After(got.Latest) {
			t.Fatalf("seed %d: without %q everyone is new by %v, %v at the latest; with them by %v", seed, what, got.At,
				got.Latest, full.At)
		}
	}
}

// lengthen makes one TTL longer, and returns its name.
func (m *model) lengthen(f *safeat.Facts) string {
	more := func(t *safeat.TTL) { *t = m.know(m.seconds(*t) + uint32(1+m.rnd.IntN(100000))) }
	l := &f.Links[m.rnd.IntN(len(f.Links))]
	r := &f.Resolvers[m.rnd.IntN(len(f.Resolvers))]
	switch m.rnd.IntN(6) {
	case 0:
		if len(l.Before) > 0 {
			more(&l.Before[m.rnd.IntN(len(l.Before))].TTL)
		}
		return "version"
	case 1:
		more(&l.TTL)
		return "today"
	case 2:
		more(&l.Denial.TTL)
		return "negative"
	case 3:
		if l.Denial.NSEC != (safeat.TTL{}) {
			more(&l.Denial.NSEC)
		}
		return "nsec"
	case 4:
		more(&r.Clamps.Positive)
		return "positive clamp"
	}
	more(&r.Clamps.Negative)
	return "negative clamp"
}

// notEarlier fails if any time of b is before that of a.
func notEarlier(t *testing.T, seed uint64, what string, a, b safeat.Report) {
	t.Helper()
	if b.At.Before(a.At) || b.Latest.Before(a.Latest) {
		t.Fatalf("seed %d, %s: everyone %v, %v; before %v, %v", seed, what, b.At, b.Latest, a.At, a.Latest)
	}
	for i, p := range a.Resolvers {
		if q := b.Resolvers[i]; q.At.Before(p.At) || q.Latest.Before(p.Latest) {
			t.Fatalf("seed %d, %s: %s %v, %v; before %v, %v", seed, what, p.Name, q.At, q.Latest, p.At, p.Latest)
		}
	}
}

func TestLongerIsNeverEarlier(t *testing.T) {
	for seed := range uint64(runs / 5) {
		m := newModel(seed)
		m.withDelegation()
		f := clone(m.facts)
		what := m.lengthen(&f)
		notEarlier(t, seed, what, safeat.Compute(m.facts), safeat.Compute(f))
	}
}

func TestClampsOnlyShorten(t *testing.T) {
	for seed := range uint64(runs / 5) {
		m := newModel(seed)
		m.withDelegation()
		f := clone(m.facts)
		for i := range f.Resolvers {
			f.Resolvers[i].Clamps = safeat.Clamps{}
		}
		notEarlier(t, seed, "no clamps", safeat.Compute(m.facts), safeat.Compute(f))
	}
}
