package alias

import (
	"sync"
	"sync/atomic"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// staleNames are the names whose addresses are the last good ones, and of which families. Nearly always there are none, and to
// find that out is one load.
type staleNames struct {
	count atomic.Int64

	mu    sync.RWMutex // guards the following
	names map[string]uint8
	wild  int // of these, wildcards
}

// set notes the families of a name that are stale, by their bits.
func (s *staleNames) set(name string, families uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]uint8{}
	}
	before := len(s.names)
	if families == 0 {
		delete(s.names, name)
	} else {
		s.names[name] = families
	}
	if name[:2] == wildcard {
		s.wild += len(s.names) - before
	}
	s.count.Store(int64(len(s.names)))
}

// wildcard is the label that begins the name of one.
const wildcard = "\x01*"

// Stale reports whether the records of a name, in lower-case wire form, are those of an ALIAS whose target cannot be looked up
// now: answers say so to those who understand (RFC 8914 §4.4).
func (s *Service) Stale(name []byte, t rr.Type) bool {
	if s.stale.count.Load() == 0 {
		return false
	}
	var family uint8
	for i := range families {
		if typeOf(i) == t {
			family = 1 << i
		}
	}
	if family == 0 {
		return false
	}
	s.stale.mu.RLock()
	defer s.stale.mu.RUnlock()
	which, ok := s.stale.names[string(name)]
	if !ok && s.stale.wild > 0 {
		which = s.stale.names[synthesizer(s.publisher.Snapshot(), name)]
	}
	return which&family != 0
}

// synthesizer is the wildcard that stands for a name which does not exist (RFC 4592 §3.3.1), whether there is one or not; empty
// for a name that exists.
func synthesizer(snap *zone.Snapshot, name []byte) string {
	apex := 0
	z := snap.Zone(name)
	for ; z == nil && name[apex] != 0; z = snap.Zone(name[apex:]) {
		apex += 1 + int(name[apex])
	}
	if z == nil {
		return ""
	}
	for at := 0; at < apex; at += 1 + int(name[at]) {
		if !z.Find(name[at:apex]).Found() {
			continue
		}
		if at == 0 {
			return ""
		}
		return wildcard + string(name[at:])
	}
	return wildcard + string(name[apex:])
}

// setRecord is what is known of an ALIAS from now on. s.mu is held.
func (s *Service) setRecord(e *entry, rec Record) {
	if is := rec.stale(); is != e.rec.stale() {
		s.stale.set(e.key.Name.Wire(), is)
	}
	e.rec = rec
	s.failing(e)
}

// stale are the bits of the families whose addresses are the last good ones.
func (r *Record) stale() (bits uint8) {
	for i, f := range r.Families {
		if len(f.Addrs) > 0 && !f.StaleSince.IsZero() {
			bits |= 1 << i
		}
	}
	return bits
}
