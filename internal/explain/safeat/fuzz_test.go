package safeat_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// factBytes builds facts from arbitrary bytes. The facts may contradict each other.
type factBytes []byte

func (b *factBytes) next() byte {
	if len(*b) == 0 {
		return 0
	}
	x := (*b)[0]
	*b = (*b)[1:]
	return x
}

func (b *factBytes) bool() bool { return b.next()&1 == 1 }

// number returns a small number, or any number up to the largest.
func (b *factBytes) number() uint32 { return uint32(b.next()) << (b.next() % 25) }

func (b *factBytes) ttl() safeat.TTL {
	if b.next()%4 == 0 {
		return safeat.TTL{}
	}
	return safeat.Seconds(b.number())
}

func (b *factBytes) time() time.Time {
	switch b.next() % 4 {
	case 0:
		return time.Time{}
	case 1:
		return t0.Add(time.Duration(b.number()) * time.Second)
	}
	return t0.Add(-time.Duration(b.number()) * time.Second)
}

func (b *factBytes) link() safeat.Link {
	owners := []string{"example.org", "www.example.org", "org", "."}
	l := safeat.Link{
		Owner: dnsname.MustParse(owners[b.next()%4]), Type: rr.Type(b.next()),
		Role: []safeat.Role{safeat.Data, safeat.ParentNS, safeat.ChildNS, safeat.DS, "?"}[b.next()%5],
		TTL:  b.ttl(), Seen: b.time(), Unchanged: b.bool(), Divided: b.bool(),
		Denial: safeat.Denial{TTL: b.ttl(), NSEC: b.ttl(),
			Ranges: []safeat.Ranges{"", safeat.RangesNone, safeat.RangesNSEC, "?"}[b.next()%4]},
		OldServersUpdated: b.bool(),
	}
	for range b.next() % 4 {
		l.Before = append(l.Before, safeat.Version{Until: b.time(), TTL: b.ttl(), Absent: b.bool()})
	}
	return l
}

func (b *factBytes) facts() safeat.Facts {
	f := safeat.Facts{Now: t0}
	for range b.next() % 4 {
		f.Links = append(f.Links, b.link())
	}
	states := []safeat.State{safeat.Current, safeat.Old, safeat.Negative, safeat.Stale, safeat.Failed, safeat.Filtered,
		safeat.Silent, "?"}
	for range b.next() % 4 {
		r := safeat.Resolver{Name: "r", Clamps: safeat.Clamps{Positive: b.ttl(), Negative: b.ttl()}}
		for range b.next() % 5 {
			r.Samples = append(r.Samples, safeat.Sample{Link: int(b.next()%5) - 1, State: states[b.next()%8], Left: b.number(),
				Seen: b.time()})
		}
		f.Resolvers = append(f.Resolvers, r)
	}
	return f
}

func FuzzCompute(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte(
		"\x01\x01\x01\x00\x01\x0a\x05\x02\x01\x01\x00\x00\x01\x05\x05\x00\x01\x01\x01\x02\x05\x05\x01\x05\x05\x00\x00\x01" +
			"\x01\x00\x00\x00\x01\x01\x01\x05\x05\x02\x05\x05"))
	f.Fuzz(func(t *testing.T, in []byte) {
		b := factBytes(in)
		facts := b.facts()
		rep := safeat.Compute(facts)
		if rep.At.Before(facts.Now) || rep.At.After(rep.Latest) || !rep.Assumed && !rep.At.Equal(rep.Latest) {
			t.Fatalf("at %v, at the latest %v, assumed %v", rep.At, rep.Latest, rep.Assumed)
		}
		for i, p := range rep.Resolvers {
			if p.State != safeat.Filtered && p.At.After(rep.At) {
				t.Fatalf("%v is after %v of everyone", p.At, rep.At)
			}
			for _, s := range facts.Resolvers[i].Samples {
				known := s.Link >= 0 && s.Link < len(facts.Links)
				if end := s.Seen.Add(time.Duration(s.Left) * time.Second); known &&
					(s.State == safeat.Old || s.State == safeat.Negative) && end.After(p.At) {
					t.Fatalf("a cache holds until %v, after %v", end, p.At)
				}
			}
		}
		c := safeat.Change{Create: b.bool(), Set: b.link(), Parent: b.link(),
			Zone: b.ttl(), Start: t0}
		if b.bool() {
			ds := b.link()
			c.DS = &ds
		}
		plan := safeat.MakePlan(c)
		last := t0
		for _, s := range plan.Steps {
			if s.At.Before(last) {
				t.Fatalf("%s at %v, after a step at %v", s.Do, s.At, last)
			}
			last = s.At
		}
		if plan.Change.Before(c.Start) || plan.Safe.Before(plan.Change) || plan.Latest.Before(plan.Safe) {
			t.Fatalf("change %v, safe %v, at the latest %v", plan.Change, plan.Safe, plan.Latest)
		}
		if _, err := json.Marshal([]any{rep, plan}); err != nil {
			t.Fatal(err)
		}
	})
}
