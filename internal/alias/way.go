package alias

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// way is where a target leads: to addresses in our zones, or out of them. It does not depend on the ALIAS it is gone for: one
// that leads back to its own ALIAS comes to the target again.
type way struct {
	target  dnsname.Name
	chain   []follow.Link
	outside dnsname.Name // where it left our zones first; zero: it did not
	back    bool         // and came back: the addresses are ours nevertheless
	sets    [2]rr.Set    // the addresses, where they are ours; no Data: there are none
	missing bool         // the last name is ours and does not exist
	cause   follow.Cause // why it has no end
	detail  string
}

func (w *way) inside() bool { return w.outside.IsZero() || w.back }

// names are the names on the way.
func (w *way) names() []dnsname.Name {
	out := []dnsname.Name{w.target}
	for _, l := range w.chain {
		if !slices.Contains(out, l.Target) {
			out = append(out, l.Target)
		}
	}
	return out
}

// ttl is the least of a TTL and those on the way.
func (w *way) ttl(t time.Duration) time.Duration {
	for _, l := range w.chain {
		t = min(t, l.TTL)
	}
	return t
}

// walker goes ways through the state of one moment.
type walker struct {
	v     store.View
	known func(dnsname.Name) []follow.Link // the CNAMEs behind an outside name, as last seen
	ways  map[start]*way                   // gone already: many aliases share a target

	project string // for whom the way is gone
	all     bool   // zones of all projects are believed
}

// start is where a way begins, and for which project: zones of others are not believed.
type start struct {
	project string
	target  dnsname.Name
}

// walk is the way from a target of a project's ALIAS.
func (w *walker) walk(project string, target dnsname.Name) (*way, error) {
	if got := w.ways[start{project, target}]; got != nil {
		return got, nil
	}
	w.project = project
	got := &way{target: target}
	next := target
	for {
		on, err := w.step(got, next)
		if err != nil {
			return nil, err
		}
		if on.IsZero() || !got.advance(target, on) {
			break
		}
		next = on
	}
	w.ways[start{project, target}] = got
	return got, nil
}

// advance judges whether the way, whose last link leads to next, goes on.
func (w *way) advance(target, next dnsname.Name) bool {
	if next == target || slices.ContainsFunc(w.chain[:len(w.chain)-1], func(l follow.Link) bool { return l.Target == next }) {
		w.cause, w.detail = follow.Loop, "the names lead back to "+next.String()
		return false
	}
	if len(w.chain) > wire.MaxChain {
		w.cause, w.detail = follow.ChainTooLong, fmt.Sprintf("more than %d names lead on to another", wire.MaxChain)
		return false
	}
	return true
}

// step goes on from a name and returns where it leads; zero: the way has ended.
func (w *walker) step(got *way, n dnsname.Name) (dnsname.Name, error) {
	p, err := w.find(n)
	if err != nil {
		return dnsname.Name{}, err
	}
	if p.elsewhere {
		return w.leave(got, n)
	}
	if !p.next.IsZero() {
		got.chain = append(got.chain, follow.Link{Name: n, Target: p.next, TTL: p.ttl})
		return p.next, nil
	}
	got.back = !got.outside.IsZero()
	got.missing = p.missing
	got.sets = p.sets
	return dnsname.Name{}, nil
}

// leave goes out of our zones. Where the CNAMEs out there lead to a name of ours, the way goes on from it: what is here is
// known better here, and it may be the ALIAS itself.
func (w *walker) leave(got *way, n dnsname.Name) (dnsname.Name, error) {
	if !got.outside.IsZero() {
		return dnsname.Name{}, nil // out a second time: the resolver has gone the rest as well
	}
	got.outside = n
	links := w.known(n)
	for i, l := range links {
		p, err := w.find(l.Target)
		if err != nil {
			return dnsname.Name{}, err
		}
		if !p.elsewhere {
			got.chain = append(got.chain, links[:i+1]...)
			return l.Target, nil
		}
	}
	return dnsname.Name{}, nil
}

// place is what our zones say of a name.
type place struct {
	elsewhere bool         // nothing: it is not theirs
	missing   bool         // it does not exist
	next      dnsname.Name // it stands for this one
	ttl       time.Duration
	sets      [2]rr.Set
}

// find looks a name up as queries do (RFC 1034 §4.3.2), with ALIAS in the place of what is made of it. A zone of another
// project is elsewhere: anybody can make a zone of any name here, but only its real owner has the world ask for it. So the
// name is looked up as the world does, unless the operator says that all are to be believed. Overlays are the platform's.
func (w *walker) find(n dnsname.Name) (place, error) {
	for apex := n; !apex.IsZero(); apex = apex.Parent() {
		z, err := w.v.ZoneByName(apex)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return place{}, err
		}
		if z.Kind != zone.Overlay {
			if z.Project != w.project && !w.all {
				return place{elsewhere: true}, nil
			}
			return w.in(z, n)
		}
		if sets, _, err := w.match(z, n); err != nil || len(sets) > 0 {
			return at(z, n, sets), err
		}
	}
	return place{elsewhere: true}, nil
}

// in looks a name up in its zone.
func (w *walker) in(z zone.Zone, n dnsname.Name) (place, error) {
	for _, m := range between(z.Name, n) {
		if m != z.Name {
			if _, err := w.v.RecordSet(z.ID, m, rr.TypeNS); !errors.Is(err, store.ErrNotFound) {
				return place{elsewhere: true}, err // delegated
			}
		}
		if m == n {
			break
		}
		s, err := w.v.RecordSet(z.ID, m, rr.TypeDNAME)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil || len(s.Data) != 1 {
			return place{}, err
		}
		return redirect(z, n, s)
	}
	sets, exists, err := w.match(z, n)
	if !exists {
		return place{missing: true}, err
	}
	return at(z, n, sets), err
}

// between are the names from the apex down to a name.
func between(apex, n dnsname.Name) []dnsname.Name {
	var out []dnsname.Name
	for ; n != apex; n = n.Parent() {
		out = append(out, n)
	}
	out = append(out, apex)
	slices.Reverse(out)
	return out
}

// redirect is what a DNAME makes of a name below it (RFC 6672 §2.2).
func redirect(z zone.Zone, n dnsname.Name, s zone.RecordSet) (place, error) {
	target, ok := rr.Target(rr.TypeDNAME, s.Data[0])
	next, _, err := dnsname.FromWire([]byte(n.In(s.Name) + target.Wire()))
	if !ok || err != nil {
		return place{missing: true}, nil // too long to be a name
	}
	return place{next: next, ttl: ttlOf(z, s)}, nil
}

// match returns the sets of a name, or of the wildcard that answers for it, and whether there is such a name. A wildcard
// may exist without sets, by a name below it (RFC 4592 §2.2.2).
func (w *walker) match(z zone.Zone, n dnsname.Name) (sets []zone.RecordSet, exists bool, err error) {
	encloser := n
	for ; ; encloser = encloser.Parent() {
		if exists, err = w.exists(z, encloser); err != nil {
			return nil, false, err
		}
		if exists {
			break
		}
	}
	if encloser != n { // RFC 4592 §3.3.1: the wildcard below the closest encloser, and no other
		if n, err = encloser.Child("*"); err != nil {
			return nil, false, nil // too long to be a name
		}
		if exists, err = w.exists(z, n); err != nil || !exists {
			return nil, false, err
		}
	}
	sets, err = w.v.RecordSetsAt(z.ID, n)
	// Without what was made of an ALIAS: where the ALIAS is gone, that is about to go in this edit.
	return slices.DeleteFunc(sets, func(s zone.RecordSet) bool { return s.Hidden }), true, err
}

// exists reports whether a name or one below it has records. The apex always exists.
func (w *walker) exists(z zone.Zone, n dnsname.Name) (found bool, err error) {
	if n == z.Name {
		return true, nil
	}
	err = w.v.RecordSetsBelow(z.ID, n, func(s zone.RecordSet) (bool, error) {
		found = !s.Hidden
		return !found, nil
	})
	return found, err
}

// at is what sets say of a name that they are of, or stand for.
func at(z zone.Zone, n dnsname.Name, sets []zone.RecordSet) place {
	var p place
	for _, s := range sets {
		switch s.Type {
		case rr.TypeALIAS, rr.TypeCNAME:
			if len(s.Data) == 1 && (s.Type == rr.TypeCNAME || z.Kind == zone.Primary) {
				p.next, _ = rr.Target(s.Type, s.Data[0])
				p.ttl = ttlOf(z, s)
			}
		case rr.TypeA, rr.TypeAAAA:
			family := 0
			if s.Type == rr.TypeAAAA {
				family = 1
			}
			p.sets[family] = s.Served(z.TTL)
			p.sets[family].Name = n
		}
	}
	return p
}

func ttlOf(z zone.Zone, s zone.RecordSet) time.Duration {
	ttl := z.TTL
	if s.TTL != nil {
		ttl = *s.TTL
	}
	return time.Duration(ttl) * time.Second
}
