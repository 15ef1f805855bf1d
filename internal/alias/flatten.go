package alias

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// flattener flattens aliases inside one edit.
type flattener struct {
	s *Service
	walker
	edit    *edit
	tx      *publish.Tx
	tracker *follow.Tracker
	policy  Policy
	epoch   int
	zones   map[uuid.UUID]zone.Zone // cache: aliases are flattened zone by zone
	grown   map[string]bool         // projects to which this edit added aliases
}

func (s *Service) flattener(tx *publish.Tx) *flattener {
	ed := s.edit(tx)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &flattener{s: s, edit: ed, tx: tx, tracker: s.tracker, policy: s.policy, epoch: s.epoch,
		zones: map[uuid.UUID]zone.Zone{}, grown: map[string]bool{}}
	f.walker = walker{v: tx.View, known: f.links, all: s.policy.AllZones, paths: map[start]*path{}}
	return f
}

// links returns the CNAMEs after an outside name, as of the last lookup.
func (f *flattener) links(n dnsname.Name) []follow.Link {
	if f.tracker == nil {
		return nil
	}
	for _, family := range families {
		st, _ := f.tracker.State(n, family)
		if links := linksAfter(st); len(links) > 0 {
			return links
		}
	}
	return nil
}

// flatten sets the A and AAAA record sets of an ALIAS to the addresses of its target. If the ALIAS is deleted, flatten
// removes them.
func (f *flattener) flatten(k Key) error {
	set, err := f.tx.RecordSet(k.Zone, k.Name, rr.TypeALIAS)
	if errors.Is(err, store.ErrNotFound) {
		return f.remove(k)
	}
	if err != nil {
		return err
	}
	z, err := f.zone(k.Zone)
	if err != nil {
		return err
	}
	if z.Kind != zone.Primary {
		return f.remove(k) // in a copy of another server's zone, the type is private to that server
	}
	if len(set.Data) == 0 {
		return nil // Check refuses it
	}
	target, ok := rr.Target(rr.TypeALIAS, set.Data[0])
	if !ok {
		return nil // Check refuses it
	}
	was, err := f.record(k)
	if err != nil {
		return err
	}
	rec := was.withTarget(target)
	p, err := f.walk(z.Project, target)
	if err != nil {
		return err
	}
	// Register the dependencies before assess reads the tracker: later changes then mark this ALIAS.
	if f.s.touch(f.edit, k, p.names(), z.Project) {
		f.grown[z.Project] = true
	}
	aimed := rec.Families
	wait := was.Target != rec.Target && needsRetry(f.tracker, p.outside)
	rec = f.assess(rec, p, k.Name, target, wait)
	if rec.Status == statusPending { // replace both families at once; serve the old ones until then
		rec.Families = aimed
	} else {
		if err := f.put(k, rec, uint32(ttlOf(z, set)/time.Second)); err != nil {
			return err
		}
	}
	rec.AllZones = f.policy.AllZones
	f.edit.changes[k] = change{rec, p.names(), p.outside, z.Project, f.epoch}
	if rec.same(was) {
		return nil
	}
	return f.tx.PutObject(store.KindAlias, k.id(), rec)
}

func (f *flattener) zone(id uuid.UUID) (zone.Zone, error) {
	z, ok := f.zones[id]
	if ok {
		return z, nil
	}
	z, err := f.tx.Zone(id)
	if err == nil {
		f.zones[id] = z
	}
	return z, err
}

// record returns the stored record of an ALIAS, or an empty one. It reads the store only if another open edit touches
// the ALIAS.
func (f *flattener) record(k Key) (Record, error) {
	if m, ok := f.edit.changes[k]; ok {
		return m.rec, nil
	}
	if rec, ok := f.s.committed(k); ok {
		return rec, nil
	}
	var rec Record
	err := f.tx.Object(store.KindAlias, k.id(), &rec)
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return rec, err
}

// withTarget returns the record for this target. If the target is new, only the addresses are kept: they are served
// until the new ones are known.
func (r Record) withTarget(target dnsname.Name) Record {
	text := target.String()
	if r.Target == text {
		return r
	}
	next := Record{Target: text, Status: statusPending, Action: actionUpdate}
	if r.Target == "" {
		next.Action = Create
	}
	for i, f := range r.Families {
		next.Families[i] = Family{Addrs: f.Addrs, TTL: f.TTL, Found: f.Found}
	}
	return next
}

// assess combines the path with the tracker's knowledge. With wait, it ignores the tracker until the next lookup ends.
func (f *flattener) assess(rec Record, p *path, owner, target dnsname.Name, wait bool) Record {
	var out [2]outcome
	links := p.chain
	rec.Outside = ""
	if !p.outside.IsZero() {
		rec.Outside = p.outside.String()
	}
	for i, family := range families {
		switch {
		case p.cause != "":
		case p.outside.IsZero():
			out[i] = pathOutcome(p, i, f.tx.Now())
		case f.tracker == nil:
			out[i] = outcome{known: true, cause: causeNoResolver,
				detail: "no resolver is configured to look up the target: set follow.resolvers"}
		default:
			st, _ := f.tracker.State(p.outside, family)
			if !wait {
				out[i] = f.outsideOutcome(st, p, i)
			}
			if i == 0 || len(links) == len(p.chain) {
				links = fullChain(links, p, st)
			}
		}
		out[i] = f.applyPolicy(out[i], &rec.Families[i], p)
	}
	if len(links) > wire.MaxChain && p.cause == "" {
		p = &path{chain: p.chain, outside: p.outside, cause: follow.ChainTooLong,
			detail: fmt.Sprintf("the chain has more than %d links", wire.MaxChain)}
		out = [2]outcome{}
	}
	rec.Chain = chainText(owner, target, links)
	return rec.assess(p, out, f.policy.StaleLimit, f.tx.Now())
}

// outsideOutcome returns the outcome of a family that is looked up elsewhere. Where the path returns to our zones, the
// addresses come from our zones, and the tracker only confirms that the path still returns.
func (f *flattener) outsideOutcome(st follow.State, p *path, family int) outcome {
	o := trackerOutcome(st)
	if !p.back || !o.known {
		return o
	}
	here := pathOutcome(p, family, f.tx.Now())
	if st.Err != nil && here.cause == "" {
		here.cause, here.detail, here.asked = o.cause, o.detail, o.asked
	}
	return here
}

// fullChain appends the CNAMEs after the last name in our zones, if the path ends there.
func fullChain(links []follow.Link, p *path, st follow.State) []follow.Link {
	if p.back {
		return links
	}
	return append(links[:len(links):len(links)], linksAfter(st)...)
}

// linksAfter returns the CNAMEs after a name that is looked up elsewhere, as far as the last lookup followed them.
func linksAfter(st follow.State) []follow.Link {
	if st.Err != nil && len(st.Err.Chain) > 0 {
		return st.Err.Chain
	}
	return st.AnswerChain
}

// applyPolicy refuses outside addresses that the policy forbids, and withdraws served addresses that it now forbids.
func (f *flattener) applyPolicy(o outcome, was *Family, p *path) outcome {
	if p.inside() {
		return o
	}
	if cause, _ := f.policy.refusesAddrs(was.Addrs); cause != "" {
		*was = was.withoutAddrs()
	}
	if cause, detail := f.policy.refusesAddrs(o.addrs); cause != "" {
		return outcome{known: true, cause: cause, detail: detail}
	}
	return o
}

// put writes the record sets of both families.
func (f *flattener) put(k Key, rec Record, ttl uint32) error {
	for i, fam := range rec.Families {
		if err := f.putSet(k, typeOf(i), fam.Addrs, min(ttl, fam.TTL)); err != nil {
			return err
		}
	}
	return nil
}

func (f *flattener) putSet(k Key, t rr.Type, addrs []netip.Addr, ttl uint32) error {
	have, err := f.tx.RecordSet(k.Zone, k.Name, t)
	exists := err == nil
	switch {
	case !exists && !errors.Is(err, store.ErrNotFound):
		return err
	case exists && !have.Hidden:
		return nil // a user's own record set; the check at the end of the edit refuses the conflict
	case !exists && len(addrs) == 0:
		return nil
	}
	f.edit.written[k] = true
	if len(addrs) == 0 {
		return f.tx.DeleteSet(k.Zone, k.Name, t)
	}
	s := zone.RecordSet{Zone: k.Zone, Name: k.Name, Type: t, TTL: &ttl, Managed: true, Hidden: true}
	for _, a := range addrs {
		s.Data = append(s.Data, string(a.AsSlice()))
	}
	if exists {
		_, err = f.tx.UpdateSet(s)
	} else {
		_, err = f.tx.CreateSet(s)
	}
	return err
}

// remove deletes the record sets and the stored record of a deleted ALIAS.
func (f *flattener) remove(k Key) error {
	if _, err := f.tx.Zone(k.Zone); err == nil {
		for i := range families {
			if err := f.putSet(k, typeOf(i), nil, 0); err != nil {
				return err
			}
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	f.s.touch(f.edit, k, nil, "")
	f.edit.changes[k] = change{}
	if err := f.tx.DeleteObject(store.KindAlias, k.id()); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}
