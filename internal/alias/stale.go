package alias

import (
	"sync"
	"sync/atomic"

	"github.com/nameplane/nameplane/internal/rr"
)

// staleNames is the set of names whose served addresses are stale, with the stale families. It is nearly always empty,
// and then costs a query one atomic load.
type staleNames struct {
	count atomic.Int64

	mu    sync.RWMutex // guards the following
	names map[string]uint8
}

// set records the stale families of a name as bits.
func (s *staleNames) set(name string, families uint8) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]uint8{}
	}
	if families == 0 {
		delete(s.names, name)
	} else {
		s.names[name] = families
	}
	s.count.Store(int64(len(s.names)))
}

// wildcard is the first label of a wildcard name in wire form.
const wildcard = "\x01*"

// Stale reports whether the records that answer for a name belong to an ALIAS whose target cannot be looked up now. The
// name is in lower-case wire form. DNS replies carry this as an extended error (RFC 8914 §4.4). When encloser is not 0,
// the wildcard below name[encloser:] answers for the name.
func (s *Service) Stale(name []byte, encloser int, t rr.Type) bool {
	if s.stale.count.Load() == 0 {
		return false
	}
	var family uint8
	switch t {
	case rr.TypeA:
		family = 1 << 0
	case rr.TypeAAAA:
		family = 1 << 1
	default:
		return false
	}
	s.stale.mu.RLock()
	defer s.stale.mu.RUnlock()
	which := s.stale.names[string(name)]
	if encloser > 0 {
		which = s.stale.names[wildcard+string(name[encloser:])]
	}
	return which&family != 0
}

// setRecord sets the committed record of an ALIAS. Callers hold s.mu.
func (s *Service) setRecord(e *entry, rec Record) {
	if is := rec.staleBits(); is != e.rec.staleBits() {
		s.stale.set(e.key.Name.Wire(), is)
	}
	e.rec = rec
	s.updateExpiryLocked(e)
}

// staleBits returns the families whose addresses are the last good ones.
func (r *Record) staleBits() (bits uint8) {
	for i, f := range r.Families {
		if len(f.Addrs) > 0 && !f.StaleSince.IsZero() {
			bits |= 1 << i
		}
	}
	return bits
}
