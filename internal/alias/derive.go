package alias

import (
	"errors"
	"maps"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Derive is for publish.Options: it flattens what an edit gives reason to.
func (s *Service) Derive(tx *publish.Tx, changed []publish.Changed) error {
	if s.publisher == nil {
		return nil // not open yet
	}
	d := derivation{s: s, tx: tx, keys: map[Key]bool{}, followers: map[Key]bool{}, tops: map[dnsname.Name]bool{}, room: maxInEdit}
	if ed := s.edits[tx]; ed != nil {
		d.own, d.room = ed.own, maxInEdit-ed.followed
	}
	for _, c := range changed {
		if err := d.zone(c); err != nil {
			return err
		}
	}
	if err := d.addBelow(); err != nil || len(d.keys)+len(d.followers) == 0 {
		return err
	}
	f := s.flattener(tx)
	f.edit.followed += len(d.followers)
	maps.Copy(d.keys, d.followers)
	for _, k := range slices.SortedFunc(maps.Keys(d.keys), Key.compare) { // so that equal edits make equal changes
		if err := f.flatten(k); err != nil {
			return err
		}
	}
	return f.checkQuotas()
}

// derivation gathers the aliases that an edit concerns.
type derivation struct {
	s         *Service
	tx        *publish.Tx
	own       map[Key]bool          // of edit
	keys      map[Key]bool          // whose own record set or zone changed
	followers map[Key]bool          // that depend on a name that changed
	room      int                   // for followers
	tops      map[dnsname.Name]bool // of below
}

func (d *derivation) zone(c publish.Changed) error {
	if c.Deleted || c.Whole {
		d.below(c.Zone.Name)
		d.ofZone(c.Zone)
	}
	if c.Whole {
		return d.tx.SetsOfType(c.Zone.ID, rr.TypeALIAS, func(n dnsname.Name) bool {
			d.keys[Key{c.Zone.ID, n}] = true
			return true
		})
	}
	for _, ch := range c.Sets {
		if err := d.set(c.Zone, ch); err != nil {
			return err
		}
	}
	return nil
}

// set adds what a changed record set concerns: the ALIAS at its name, and those whose way leads by it.
func (d *derivation) set(z zone.Zone, ch store.SetChange) error {
	s := ch.After
	if s == nil {
		s = ch.Before
	}
	k := Key{z.ID, s.Name}
	hidden := ch.Before != nil && ch.Before.Hidden || ch.After != nil && ch.After.Hidden
	switch {
	case s.Type == rr.TypeALIAS:
		d.keys[k] = true
	case hidden && d.own[k]:
		return nil // ours; no way leads by it
	case hidden:
		d.keys[k] = true
	}
	if !d.s.any() {
		return nil
	}
	return d.around(z, s, ch.Before == nil || ch.After == nil || ch.Before.Hidden != ch.After.Hidden)
}

// around adds the aliases whose way leads by a record set that changed, or came or went.
func (d *derivation) around(z zone.Zone, s *zone.RecordSet, came bool) error {
	if err := d.at(s.Name); err != nil {
		return err
	}
	if came { // a name above it may exist by it alone, except the apex
		for n := s.Name; n != z.Name && n.Parent() != z.Name; {
			n = n.Parent()
			if err := d.at(n); err != nil {
				return err
			}
		}
	}
	if s.Type == rr.TypeSOA && came || s.Type == rr.TypeDNAME || s.Type == rr.TypeNS && s.Name != z.Name {
		d.below(s.Name) // a zone, a cut or a DNAME decides about all below it
	}
	if s.Name.IsWildcard() {
		d.below(s.Name.Parent())
	}
	if came {
		return d.wildcards(z, s.Name)
	}
	return nil
}

// wildcards adds what a wildcard above a name stands for: no longer, if the name has come to exist, or again.
func (d *derivation) wildcards(z zone.Zone, n dnsname.Name) error {
	for n != z.Name {
		n = n.Parent()
		star, err := n.Child("*")
		if err != nil {
			continue
		}
		sets, err := d.tx.RecordSetsAt(z.ID, star)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if len(sets) > 0 {
			d.below(n)
		}
	}
	return nil
}

// at adds what depends on a name, or leaves it to Run if that is too much for one edit.
func (d *derivation) at(n dnsname.Name) error {
	d.s.mu.Lock()
	entries := d.s.index.byName[n]
	fits := len(d.followers)+len(entries) <= d.room
	if fits {
		for e := range entries {
			d.followers[e.key] = true
		}
	}
	d.s.mu.Unlock()
	if fits {
		return nil
	}
	return d.postpone(dueName{name: n})
}

// below has what depends on a name or on one below it added, by addBelow.
func (d *derivation) below(n dnsname.Name) { d.tops[n] = true }

// addBelow is at for the names of below and all names below them.
func (d *derivation) addBelow() error {
	for _, n := range slices.SortedFunc(maps.Keys(d.tops), dnsname.Name.Compare) { // the room goes to the same ones each time
		found := map[Key]bool{}
		visits := maxVisits
		d.s.mu.Lock()
		fits := d.s.index.below(n, &visits, func(e *entry) bool {
			found[e.key] = true
			return len(d.followers)+len(found) <= d.room
		})
		d.s.mu.Unlock()
		if fits {
			maps.Copy(d.followers, found)
		} else if err := d.postpone(dueName{n, true}); err != nil {
			return err
		}
	}
	return nil
}

// ofZone adds the aliases in a zone.
func (d *derivation) ofZone(z zone.Zone) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	for n := range d.s.index.byZone[z.ID] {
		d.keys[Key{z.ID, n}] = true
	}
}
