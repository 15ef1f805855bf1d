package safeat_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/rr"
)

// mover is a resolver during the move of a zone from old servers to new ones at t0. It may prefer the NS set of the
// zone's own servers to the parent's, as Unbound always and BIND sometimes does. It does not refresh a set that it
// has.
type mover struct {
	rnd                 *rand.Rand
	parent, child, data uint32 // TTLs
	oldServersUpdated   bool   // the old servers serve the new set and data after the move

	nsEnd, dataEnd       time.Time
	nsOld, nsChild, seen bool // seen: the cached data came from the old servers
}

func ends(at time.Time, ttl uint32) time.Time {
	return at.Truncate(time.Second).Add(time.Duration(ttl)*time.Second + time.Second)
}

// ask resolves the name at a time, and reports whether the answer is the new one.
func (m *mover) ask(at time.Time) bool {
	if at.Before(m.dataEnd) {
		return !m.seen
	}
	moved := !at.Before(t0)
	if !at.Before(m.nsEnd) {
		m.nsOld, m.nsChild, m.nsEnd = !moved, false, ends(at, m.parent)
	}
	old := m.nsOld && (!moved || !m.oldServersUpdated)
	switch {
	case m.rnd.IntN(2) == 0:
	case m.nsOld && moved && m.oldServersUpdated:
		m.nsOld, m.nsChild = false, true
	case !m.nsChild:
		m.nsChild, m.nsEnd = true, ends(at, m.child)
	}
	m.seen, m.dataEnd = old, ends(at, m.data)
	return !old
}

// TestMoveIsNeverLate simulates moves of zones: no resolver may return an answer of the old servers after the bound,
// whenever it asks.
func TestMoveIsNeverLate(t *testing.T) {
	tight := 0
	for seed := range uint64(runs / 2) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		pick := func() uint32 { return []uint32{1, 30, 300, 3600, 86400, 172800}[rnd.IntN(6)] }
		m := mover{rnd: rnd, parent: pick(), child: pick(), data: pick(), oldServersUpdated: rnd.IntN(2) == 0}
		link := func(owner string, typ rr.Type, role safeat.Role, ttl uint32) safeat.Link {
			return safeat.Link{Owner: dnsname.MustParse(owner), Type: typ, Role: role, Seen: t0, TTL: safeat.Seconds(ttl),
				OldServersUpdated: m.oldServersUpdated,
				Before:            []safeat.Version{{Until: t0, TTL: safeat.Seconds(ttl)}}}
		}
		rep := safeat.Compute(safeat.Facts{Now: t0, Links: []safeat.Link{
			link("example.org", rr.TypeNS, safeat.ParentNS, m.parent),
			link("example.org", rr.TypeNS, safeat.ChildNS, m.child),
			link("www.example.org", rr.TypeA, safeat.Data, m.data),
		}})
		if m.oldServersUpdated && (rep.Assumed || !rep.At.Equal(rep.Latest)) {
			t.Fatalf("seed %d: all is known, yet %+v", seed, rep)
		}
		last := t0
		for at, n := t0.Add(-time.Duration(1+rnd.IntN(500))*time.Millisecond), 0; n < 400; n++ {
			if !m.ask(at) {
				last = at
			}
			at = m.next(rnd, at)
		}
		if last.After(rep.Latest) {
			t.Fatalf("seed %d: %+v: the old answer was given at %v, after %v", seed, m, last, rep.Latest)
		}
		if rep.Latest.Sub(last) < 10*time.Second {
			tight++
		}
	}
	if tight < runs/50 {
		t.Errorf("only %d of %d bounds were nearly reached", tight, runs/2)
	}
}

// next returns the time of the next query: just before or after something expires, or at random.
func (m *mover) next(rnd *rand.Rand, at time.Time) time.Time {
	var to time.Time
	switch rnd.IntN(4) {
	case 0:
		to = m.nsEnd.Add(-time.Millisecond)
	case 1:
		to = m.dataEnd.Add(-time.Millisecond)
	case 2:
		to = m.dataEnd
	default:
		to = at.Add(time.Duration(rnd.Int64N(int64(m.data)*2e9 + 1)))
	}
	if !to.After(at) {
		to = at.Add(time.Millisecond)
	}
	return to
}

// TestPlannedMove simulates planned moves: no resolver knows the old servers when they are switched off.
func TestPlannedMove(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 10))
		pick := func() uint32 { return []uint32{1, 30, 300, 3600, 86400, 172800}[rnd.IntN(6)] }
		m := mover{rnd: rnd, parent: pick(), child: pick(), data: pick(), oldServersUpdated: true}
		p := safeat.MakePlan(safeat.Change{Set: link(safeat.ChildNS, rr.TypeNS, m.child), Zone: safeat.Seconds(m.data),
			Start:  t0,
			Parent: safeat.Link{TTL: safeat.Seconds(m.parent)}})
		// The model moves the zone at t0, so the times of the plan are shifted.
		off := t0.Add(p.Safe.Sub(p.Change))
		lowered := t0.Add(-p.Change.Sub(t0))
		full := m.child
		for at, n := t0.Add(-time.Duration(rnd.Int64N(int64(p.Change.Sub(t0))+int64(time.Second)))), 0; n < 50; n++ {
			if m.child = full; !at.Before(lowered) {
				m.child = min(full, 300)
			}
			m.ask(at)
			if m.nsOld && m.nsEnd.After(off) {
				t.Fatalf("seed %d: %+v: asked at %v it has the old servers until %v, after %v", seed, m, at, m.nsEnd, off)
			}
			if at = m.next(rnd, at); !at.Before(off) {
				break
			}
		}
	}
}
