package transfer

import (
	"net/netip"
	"slices"

	"github.com/google/uuid"
)

// job is the query of a zone to one of its masters.
type job struct {
	zone    uuid.UUID
	project string
	master  netip.Addr // as returned by SourceOf
}

// SourceOf returns the address that identifies one server. IPv6 networks give a /64 to one machine, so that is its
// prefix.
func SourceOf(a netip.Addr) netip.Addr {
	if a.Is6() {
		p, _ := a.WithZone("").Prefix(64) // fails for IPv4 only
		return p.Addr()
	}
	return a
}

// fairQueue shares the slots for transfers. No project and no master has more than a quarter of them. Waiting projects
// are served round robin, whatever their number of zones. A waiting zone holds no slot. Callers hold a lock.
type fairQueue struct {
	most     int // number of slots
	running  int
	masters  map[netip.Addr]int // running jobs by master
	projects map[string]*projectQueue
	order    []*projectQueue // projects with waiting jobs; the next one is first
}

// projectQueue has the jobs of one project.
type projectQueue struct {
	running int
	waiting map[netip.Addr][]job // waiting jobs by master
	order   []netip.Addr         // keys of waiting; the next one is first
}

func newFairQueue(most int) *fairQueue {
	return &fairQueue{most: most, masters: map[netip.Addr]int{}, projects: map[string]*projectQueue{}}
}

// add queues a job.
func (t *fairQueue) add(z job) {
	s := t.projects[z.project]
	if s == nil {
		s = &projectQueue{waiting: map[netip.Addr][]job{}}
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

// next removes a job from the queue and gives it a slot. It returns false if no waiting job may have one. At most four
// projects and four masters have their quarter, so the search is short.
func (t *fairQueue) next() (job, bool) {
	if t.running == t.most {
		return job{}, false
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
		z := s.pop(j)
		if len(s.order) > 0 {
			t.order = append(t.order, s)
		}
		t.running++
		s.running++
		t.masters[z.master]++
		return z, true
	}
	return job{}, false
}

// pop removes the first job for the j-th master. Further jobs for that master go behind those for the other masters of
// the project.
func (s *projectQueue) pop(j int) job {
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

// done releases the slot of a job.
func (t *fairQueue) done(z job) {
	t.running--
	if t.masters[z.master]--; t.masters[z.master] == 0 {
		delete(t.masters, z.master)
	}
	s := t.projects[z.project]
	if s.running--; s.running == 0 && len(s.order) == 0 {
		delete(t.projects, z.project)
	}
}
