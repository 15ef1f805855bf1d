package agent

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// place is an address in a set.
type place struct {
	pattern enforce.Pattern
	addr    netip.Addr
}

// presence is since when, and by which write, an address is in its set.
type presence struct {
	mark  ovn.Mark
	since time.Time
}

// present notes what the sets have now.
func (e *engine) present(w ovn.World) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, n := time.Now(), 0
	for p, addrs := range w.Learned {
		if n++; n%breath == 0 {
			e.breathe()
		}
		had := e.there[p]
		has := make(map[netip.Addr]presence, len(addrs))
		for _, a := range addrs {
			was, ok := had[a]
			if !ok || !e.db.Current(was.mark) {
				was = presence{e.wrote, now}
			}
			has[a] = was
		}
		e.there[p] = e.since(p, had, has, now)
	}
	for p, had := range e.there {
		if n++; n%breath == 0 {
			e.breathe()
			had = e.there[p]
		}
		if _, ok := w.Learned[p]; ok {
			continue
		}
		if e.there[p] = e.since(p, had, map[netip.Addr]presence{}, now); len(e.there[p]) == 0 {
			delete(e.there, p)
		}
	}
}

// since adds to has what was added by the short way since the world was looked at.
func (e *engine) since(p enforce.Pattern, had, has map[netip.Addr]presence, now time.Time) map[netip.Addr]presence {
	if !e.used[p] {
		return has
	}
	for a, was := range had {
		if _, ok := has[a]; !ok && e.book.until(p, a).After(now) {
			has[a] = was
		}
	}
	return has
}
