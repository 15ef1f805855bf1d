package transfer

import (
	"net/netip"
	"testing"
)

// rota is turns of 16 slots, and the zones that have one.
type rota struct {
	*turns
	t       *testing.T
	running []turn
	last    byte
}

func newRota(t *testing.T) *rota { return &rota{turns: newTurns(16), t: t} }

// wait puts n zones into the line.
func (r *rota) wait(n int, project, master string) {
	for range n {
		r.last++
		r.add(turn{dnsID(r.last), project, SourceOf(netip.MustParseAddr(master))})
	}
}

// start gives all zones that may have one a slot, and returns how many of a project have one.
func (r *rota) start(project string) (n int) {
	for z, ok := r.next(); ok; z, ok = r.next() {
		r.running = append(r.running, z)
	}
	for _, z := range r.running {
		if z.project == project {
			n++
		}
	}
	return n
}

func (r *rota) want(project string, want int) {
	r.t.Helper()
	if n := r.start(project); n != want {
		r.t.Errorf("project %s has %d slots, want %d", project, n, want)
	}
}

// TestTurns: whatever the number of zones, a project has a quarter of the slots, and so has a master.
func TestTurns(t *testing.T) {
	r := newRota(t)
	r.wait(100, "a", "192.0.2.1")
	r.want("a", 4)
	r.wait(1, "b", "192.0.2.2")
	r.want("b", 1)
	r.wait(10, "c", "192.0.2.1") // the master of a, which has its quarter
	r.want("c", 0)
	r.wait(1, "c", "192.0.2.3")
	r.want("c", 1)
	for _, m := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} { // one network is one master
		r.wait(3, "d"+m, m)
		r.start("d" + m)
	}
	if n := len(r.running); n != 10 {
		t.Errorf("%d slots are taken, want 10", n)
	}
}

// TestTurnsOfProject: a project has a quarter of the slots, however many masters its zones have.
func TestTurnsOfProject(t *testing.T) {
	r := newRota(t)
	for _, m := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8:1::1", "2001:db8:2::1"} {
		r.wait(3, "a", m)
	}
	r.want("a", 4)
	r.wait(1, "b", "192.0.2.1")
	r.want("b", 1)
}

// TestTurnsGoRound: projects take turns, and a project's masters do.
func TestTurnsGoRound(t *testing.T) {
	r := newRota(t)
	r.wait(100, "a", "192.0.2.1")
	r.start("a")
	r.wait(3, "b", "192.0.2.1")
	for i := range 4 { // of the master's slots every second one is b's
		r.done(r.running[0])
		z, ok := r.next()
		if !ok || (z.project == "b") != (i%2 == 1) {
			t.Fatalf("turn %d: %v %v", i, z, ok)
		}
		r.running = append(r.running[1:], z)
	}
	for len(r.running) > 0 {
		for _, z := range r.running {
			r.done(z)
		}
		r.running = nil
		r.start("")
	}
	if r.turns.running != 0 || len(r.masters) != 0 || len(r.projects) != 0 || len(r.order) != 0 {
		t.Errorf("after all have ended: %+v", r.turns)
	}
}
