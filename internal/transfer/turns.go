package transfer

import (
	"net/netip"
	"slices"

	"github.com/google/uuid"
)

// turn is a zone that may ask one of its masters.
type turn struct {
	zone    uuid.UUID
	project string
	master  netip.Addr // of SourceOf
}

// SourceOf returns the address that counts as one server: networks of IPv6 give a /64 to one machine.
func SourceOf(a netip.Addr) netip.Addr {
	if a.Is6() {
		p, _ := a.WithZone("").Prefix(64) // fails for IPv4 only
		return p.Addr()
	}
	return a
}

// turns shares the slots for transfers: no project and no master has more than a quarter of them, and the projects
// whose zones wait take turns, whatever their number of zones. A zone that waits holds no slot. The caller holds a
// lock.
type turns struct {
	most     int // slots
	running  int
	masters  map[netip.Addr]int // running
	projects map[string]*share
	order    []*share // those with zones that wait; the next one is first
}

// share is one project's part of the turns.
type share struct {
	running int
	waiting map[netip.Addr][]turn // by master
	order   []netip.Addr          // of waiting; the next one is first
}

func newTurns(most int) *turns {
	return &turns{most: most, masters: map[netip.Addr]int{}, projects: map[string]*share{}}
}

// add puts a zone into the line.
func (t *turns) add(z turn) {
	s := t.projects[z.project]
	if s == nil {
		s = &share{waiting: map[netip.Addr][]turn{}}
		t.projects[z.project] = s
	}
	if len(s.waiting) == 0 {
		t.order = append(t.order, s)
	}
	if len(s.waiting[z.master]) == 0 {
		s.order = append(s.order, z.master)
	}
	s.waiting[z.master] = append(s.waiting[z.master], z)
}

// next takes a zone out of the line and gives it a slot. It reports false when no zone that waits may have one. At most
// four projects and four masters have their quarter, so the search is short.
func (t *turns) next() (turn, bool) {
	if t.running == t.most {
		return turn{}, false
	}
	for i, s := range t.order {
		if s.running >= t.most/4 {
			continue
		}
		j := slices.IndexFunc(s.order, func(m netip.Addr) bool { return t.masters[m] < t.most/4 })
		if j < 0 {
			continue
		}
		t.order = slices.Delete(t.order, i, i+1)
		z := s.take(j)
		if len(s.order) > 0 {
			t.order = append(t.order, s)
		}
		t.running++
		s.running++
		t.masters[z.master]++
		return z, true
	}
	return turn{}, false
}

// take takes the first zone that waits for a master out of the line. The other zones of that master wait behind those
// of the project's other masters.
func (s *share) take(j int) turn {
	m := s.order[j]
	z := s.waiting[m][0]
	s.order = slices.Delete(s.order, j, j+1)
	if s.waiting[m] = s.waiting[m][1:]; len(s.waiting[m]) > 0 {
		s.order = append(s.order, m)
	} else {
		delete(s.waiting, m)
	}
	return z
}

// done gives the slot of a zone back.
func (t *turns) done(z turn) {
	t.running--
	if t.masters[z.master]--; t.masters[z.master] == 0 {
		delete(t.masters, z.master)
	}
	s := t.projects[z.project]
	if s.running--; s.running == 0 && len(s.order) == 0 {
		delete(t.projects, z.project)
	}
}
