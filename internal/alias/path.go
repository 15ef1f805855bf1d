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

// path is the chain of names from a target to its addresses, in our zones or out of them. It does not depend on the
// ALIAS for which it is walked: a path that leads back to the ALIAS reaches the target again.
type path struct {
	target  dnsname.Name
	chain   []follow.Link
	outside dnsname.Name // first name outside our zones; zero: the path stays inside
	back    bool         // the path left our zones and returned: the addresses are in our zones
	sets    [2]rr.Set    // the addresses in our zones; no Data: none
	missing bool         // the last name is in our zones and does not exist
	cause   follow.Cause // why the path has no end
	detail  string
}

func (p *path) inside() bool { return p.outside.IsZero() || p.back }

// names returns the names on the path.
func (p *path) names() []dnsname.Name {
	out := []dnsname.Name{p.target}
	for _, l := range p.chain {
		if !slices.Contains(out, l.Target) {
			out = append(out, l.Target)
		}
	}
	return out
}

// ttl returns the least of t and the TTLs on the path.
func (p *path) ttl(t time.Duration) time.Duration {
	for _, l := range p.chain {
		t = min(t, l.TTL)
	}
	return t
}

// walker walks paths through the state of one moment.
type walker struct {
	v     store.View
	known func(dnsname.Name) []follow.Link // the CNAMEs after an outside name, as last seen
	paths map[start]*path                  // cache: many aliases share a target

	project string // project for which the path is walked
	all     bool   // trust the zones of all projects
}

// start is the first name of a path and the project of its ALIAS. The project matters because zones of other projects
// are not trusted.
type start struct {
	project string
	target  dnsname.Name
}

// walk returns the path from the target of an ALIAS in a project.
func (w *walker) walk(project string, target dnsname.Name) (*path, error) {
	if got := w.paths[start{project, target}]; got != nil {
		return got, nil
	}
	w.project = project
	got := &path{target: target}
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
	w.paths[start{project, target}] = got
	return got, nil
}

// advance reports whether the path, whose last link leads to next, continues. It detects loops and chains that are too
// long.
func (p *path) advance(target, next dnsname.Name) bool {
	if next == target || slices.ContainsFunc(p.chain[:len(p.chain)-1],
		func(l follow.Link) bool { return l.Target == next }) {
		p.cause, p.detail = follow.Loop, "the chain leads back to "+next.String()
		return false
	}
	if len(p.chain) > wire.MaxChain {
		p.cause, p.detail = follow.ChainTooLong, fmt.Sprintf("the chain has more than %d links", wire.MaxChain)
		return false
	}
	return true
}

// step appends the link from a name and returns the next name; zero: the path ends here.
func (w *walker) step(got *path, n dnsname.Name) (dnsname.Name, error) {
	p, err := w.lookup(n)
	if err != nil {
		return dnsname.Name{}, err
	}
	if p.elsewhere {
		return w.leaveOurZones(got, n)
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

// leaveOurZones continues a path outside our zones. Where the outside CNAMEs lead back to a name in our zones, the path
// continues there: our own data is newer than the resolver's, and the name may be the ALIAS itself.
func (w *walker) leaveOurZones(got *path, n dnsname.Name) (dnsname.Name, error) {
	if !got.outside.IsZero() {
		return dnsname.Name{}, nil // outside for a second time: the resolver has followed that part too
	}
	got.outside = n
	links := w.known(n)
	for i, l := range links {
		p, err := w.lookup(l.Target)
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

// localAnswer is the content of our zones for a name.
type localAnswer struct {
	elsewhere bool         // the name is not in our zones
	missing   bool         // the name does not exist
	next      dnsname.Name // target of the CNAME, DNAME or ALIAS at the name
	ttl       time.Duration
	sets      [2]rr.Set
}

// lookup finds a name as queries do (RFC 1034 §4.3.2), but uses an ALIAS itself and not the records derived from it.
// The zone of another project counts as elsewhere. Any user can create a zone of any name here, but only its real owner
// controls the delegation. So such a name is resolved from outside, unless the operator trusts all projects. Overlays
// belong to the platform and are always used.
func (w *walker) lookup(n dnsname.Name) (localAnswer, error) {
	for apex := n; !apex.IsZero(); apex = apex.Parent() {
		z, err := w.v.ZoneByName(apex)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return localAnswer{}, err
		}
		if z.Kind != zone.Overlay {
			if z.Project != w.project && !w.all {
				return localAnswer{elsewhere: true}, nil
			}
			return w.lookupInZone(z, n)
		}
		if sets, _, err := w.match(z, n); err != nil || len(sets) > 0 {
			return answerFrom(z, n, sets), err
		}
	}
	return localAnswer{elsewhere: true}, nil
}

// lookupInZone finds a name in its zone.
func (w *walker) lookupInZone(z zone.Zone, n dnsname.Name) (localAnswer, error) {
	for _, m := range namesFromApex(z.Name, n) {
		if m != z.Name {
			if _, err := w.v.RecordSet(z.ID, m, rr.TypeNS); !errors.Is(err, store.ErrNotFound) {
				return localAnswer{elsewhere: true}, err // delegated
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
			return localAnswer{}, err
		}
		return redirect(z, n, s)
	}
	sets, exists, err := w.match(z, n)
	if !exists {
		return localAnswer{missing: true}, err
	}
	return answerFrom(z, n, sets), err
}

// namesFromApex returns the names from the apex down to a name.
func namesFromApex(apex, n dnsname.Name) []dnsname.Name {
	var out []dnsname.Name
	for ; n != apex; n = n.Parent() {
		out = append(out, n)
	}
	out = append(out, apex)
	slices.Reverse(out)
	return out
}

// redirect returns the name that a DNAME substitutes for a name below it (RFC 6672 §2.2).
func redirect(z zone.Zone, n dnsname.Name, s zone.RecordSet) (localAnswer, error) {
	target, ok := rr.Target(rr.TypeDNAME, s.Data[0])
	next, _, err := dnsname.FromWire([]byte(n.In(s.Name) + target.Wire()))
	if !ok || err != nil {
		return localAnswer{missing: true}, nil // too long to be a name
	}
	return localAnswer{next: next, ttl: ttlOf(z, s)}, nil
}

// match returns the record sets of a name, or of the wildcard that answers for it, and whether that name exists. A
// wildcard may exist without record sets, because of a name below it (RFC 4592 §2.2.2).
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
	// Skip record sets derived from an ALIAS: if the ALIAS is deleted, this edit deletes them too.
	return slices.DeleteFunc(sets, func(s zone.RecordSet) bool { return s.Hidden }), true, err
}

// exists reports whether a name or a name below it has records. The apex always exists.
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

// answerFrom returns the answer for a name from its record sets, or from those of the wildcard that applies.
func answerFrom(z zone.Zone, n dnsname.Name, sets []zone.RecordSet) localAnswer {
	var p localAnswer
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
