package alias

import (
	"errors"
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

// flattener flattens inside one edit.
type flattener struct {
	s *Service
	walker
	edit    *edit
	tx      *publish.Tx
	tracker *follow.Tracker
	policy  Policy
	epoch   int
	zones   map[uuid.UUID]zone.Zone // read already: aliases are flattened by zone
	grown   map[string]bool         // projects that have more aliases than before
}

func (s *Service) flattener(tx *publish.Tx) *flattener {
	ed := s.edit(tx)
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &flattener{s: s, edit: ed, tx: tx, tracker: s.tracker, policy: s.policy, epoch: s.epoch,
		zones: map[uuid.UUID]zone.Zone{}, grown: map[string]bool{}}
	f.walker = walker{v: tx.View, known: f.links, all: s.policy.AllZones, ways: map[start]*way{}}
	return f
}

// links are the CNAMEs behind an outside name when it was last looked up.
func (f *flattener) links(n dnsname.Name) []follow.Link {
	if f.tracker == nil {
		return nil
	}
	for _, family := range families {
		st, _ := f.tracker.State(n, family)
		if links := behind(st); len(links) > 0 {
			return links
		}
	}
	return nil
}

// flatten makes the record sets of an ALIAS what its target is, or removes them if it is gone.
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
		return f.remove(k) // the type of a private record of another's, in a copy of their zone
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
	rec := was.aimed(target)
	w, err := f.walk(z.Project, target)
	if err != nil {
		return err
	}
	// Before judge asks the tracker: what that learns from now on marks this ALIAS.
	if f.s.touch(f.edit, k, w.names(), z.Project) {
		f.grown[z.Project] = true
	}
	aimed := rec.Families
	wait := was.Target != rec.Target && doubted(f.tracker, w.outside)
	rec = f.judge(rec, w, k.Name, target, wait)
	if rec.Status == statusPending { // both families at once, and the old ones until then
		rec.Families = aimed
	} else {
		if err := f.put(k, rec, uint32(ttlOf(z, set)/time.Second)); err != nil {
			return err
		}
	}
	rec.AllZones = f.policy.AllZones
	f.edit.made[k] = made{rec, w.names(), w.outside, z.Project, f.epoch}
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

// record returns the row of an ALIAS, or an empty one. It reads the row only if another open edit touches it.
func (f *flattener) record(k Key) (Record, error) {
	if m, ok := f.edit.made[k]; ok {
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

// aimed is a record of this target. What was known of another is forgotten, but for the addresses: they are served until the
// new ones are known.
func (r Record) aimed(target dnsname.Name) Record {
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

// judge brings together where the way leads and what the tracker knows, unless that is to be waited for.
func (f *flattener) judge(rec Record, w *way, owner, target dnsname.Name, wait bool) Record {
	var out [2]outcome
	links := w.chain
	rec.Outside = ""
	if !w.outside.IsZero() {
		rec.Outside = w.outside.String()
	}
	for i, family := range families {
		switch {
		case w.cause != "":
		case w.outside.IsZero():
			out[i] = ofWay(w, i, f.tx.Now())
		case f.tracker == nil:
			out[i] = outcome{known: true, cause: causeNoResolver, detail: "no resolver is configured to look the target up: set follow.resolvers"}
		default:
			st, _ := f.tracker.State(w.outside, family)
			if !wait {
				out[i] = f.outside(st, w, i)
			}
			if i == 0 || len(links) == len(w.chain) {
				links = longer(links, w, st)
			}
		}
		out[i] = f.allowed(out[i], &rec.Families[i], w)
	}
	if len(links) > wire.MaxChain && w.cause == "" {
		w = &way{chain: w.chain, outside: w.outside, cause: follow.ChainTooLong, detail: "more than 16 names lead on to another"}
		out = [2]outcome{}
	}
	rec.Chain = chainText(owner, target, links)
	return rec.judge(w, out, f.policy.StaleLimit, f.tx.Now())
}

// outside is the outcome of a family that is looked up elsewhere. Where the way comes back to our zones, the addresses are
// those here, and only whether it still does is the tracker's to say.
func (f *flattener) outside(st follow.State, w *way, family int) outcome {
	o := ofState(st)
	if !w.back || !o.known {
		return o
	}
	here := ofWay(w, family, f.tx.Now())
	if st.Err != nil && here.cause == "" {
		here.cause, here.detail, here.asked = o.cause, o.detail, o.asked
	}
	return here
}

// longer is the chain with what lies behind the last name of ours, if the way ends there.
func longer(links []follow.Link, w *way, st follow.State) []follow.Link {
	if w.back {
		return links
	}
	return append(links[:len(links):len(links)], behind(st)...)
}

// behind is the CNAMEs behind a name that is looked up elsewhere, as far as the last lookup came.
func behind(st follow.State) []follow.Link {
	if st.Err != nil && len(st.Err.Chain) > 0 {
		return st.Err.Chain
	}
	return st.Way
}

// allowed refuses addresses from elsewhere that policy forbids, and takes back those that it did not forbid before.
func (f *flattener) allowed(o outcome, was *Family, w *way) outcome {
	if w.inside() {
		return o
	}
	if cause, _ := f.policy.refusesOne(was.Addrs); cause != "" {
		*was = was.without()
	}
	if cause, detail := f.policy.refusesOne(o.addrs); cause != "" {
		return outcome{known: true, cause: cause, detail: detail}
	}
	return o
}

// put makes the record sets what the record says.
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
		return nil // somebody's own: they cannot stand together, which the end of the edit finds out
	case !exists && len(addrs) == 0:
		return nil
	}
	f.edit.own[k] = true
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

// remove takes away what was made of an ALIAS that is gone.
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
	f.edit.made[k] = made{}
	if err := f.tx.DeleteObject(store.KindAlias, k.id()); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}
