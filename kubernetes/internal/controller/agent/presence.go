package agent

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// setMember is an address in the set of a pattern.
type setMember struct {
	pattern enforce.Pattern
	addr    netip.Addr
}

// presence is the time since when an address is in its set, and the write that added it.
type presence struct {
	mark  ovn.Mark
	since time.Time
}

// notePresent updates the addresses that the sets contain.
func (e *engine) notePresent(w ovn.Input) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, n := time.Now(), 0
	for p, addrs := range w.Learned {
		if n++; n%yieldEvery == 0 {
			e.yieldLock()
		}
		had := e.programmed[p]
		has := make(map[netip.Addr]presence, len(addrs))
		for _, a := range addrs {
			was, ok := had[a]
			// A mark of an earlier connection proves nothing: the database may have been restored since.
			if !ok || !e.db.Current(was.mark) {
				was = presence{e.wrote, now}
			}
			has[a] = was
		}
		e.programmed[p] = e.since(p, had, has, now)
	}
	for p, had := range e.programmed {
		if n++; n%yieldEvery == 0 {
			e.yieldLock()
			// yieldLock lets other goroutines change the map, so the value from the iteration may be old.
			had = e.programmed[p]
		}
		if _, ok := w.Learned[p]; ok {
			continue
		}
		if e.programmed[p] = e.since(p, had, map[netip.Addr]presence{}, now); len(e.programmed[p]) == 0 {
			delete(e.programmed, p)
		}
	}
}

// since adds the addresses that the short path added after w was created.
func (e *engine) since(p enforce.Pattern, had, has map[netip.Addr]presence, now time.Time) map[netip.Addr]presence {
	if !e.used[p] {
		return has
	}
	for a, was := range had {
		if _, ok := has[a]; !ok && e.leaseTable.until(p, a).After(now) {
			has[a] = was
		}
	}
	return has
}
