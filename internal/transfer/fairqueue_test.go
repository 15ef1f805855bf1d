package transfer

import (
	"net/netip"
	"testing"
)

// queueTest is a fairQueue of 16 slots, and the running jobs.
type queueTest struct {
	*fairQueue
	t       *testing.T
	running []job
	last    byte
}

func newQueueTest(t *testing.T) *queueTest { return &queueTest{fairQueue: newFairQueue(16), t: t} }

// wait queues n jobs.
func (r *queueTest) wait(n int, project, master string) {
	for range n {
		r.last++
		r.add(job{dnsID(r.last), project, SourceOf(netip.MustParseAddr(master))})
	}
}

// start gives slots to all jobs that may run, and returns how many of a project are running.
func (r *queueTest) start(project string) (n int) {
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

func (r *queueTest) want(project string, want int) {
	r.t.Helper()
	if n := r.start(project); n != want {
		r.t.Errorf("project %s has %d slots, want %d", project, n, want)
	}
}

// TestFairQueue checks that a project has a quarter of the slots, whatever its number of zones, and so has a master.
func TestFairQueue(t *testing.T) {
	r := newQueueTest(t)
	r.wait(100, "a", "192.0.2.1")
	r.want("a", 4)
	r.wait(1, "b", "192.0.2.2")
	r.want("b", 1)
	r.wait(10, "c", "192.0.2.1") // the master of project a, which has its quarter
	r.want("c", 0)
	r.wait(1, "c", "192.0.2.3")
	r.want("c", 1)
	for _, m := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} { // one network counts as one master
		r.wait(3, "d"+m, m)
		r.start("d" + m)
	}
	if n := len(r.running); n != 10 {
		t.Errorf("%d slots are taken, want 10", n)
	}
}

// TestProjectQuarter checks that a project has a quarter of the slots, however many masters its zones have.
func TestProjectQuarter(t *testing.T) {
	r := newQueueTest(t)
	for _, m := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8:1::1", "2001:db8:2::1"} {
		r.wait(3, "a", m)
	}
	r.want("a", 4)
	r.wait(1, "b", "192.0.2.1")
	r.want("b", 1)
}

// TestRoundRobin checks that projects are served round robin, and so are the masters of a project.
func TestRoundRobin(t *testing.T) {
	r := newQueueTest(t)
	r.wait(100, "a", "192.0.2.1")
	r.start("a")
	r.wait(3, "b", "192.0.2.1")
	for i := range 4 { // every second slot of the master belongs to b
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
	if r.fairQueue.running != 0 || len(r.masters) != 0 || len(r.projects) != 0 || len(r.order) != 0 {
		t.Errorf("after all have ended: %+v", r.fairQueue)
	}
}
