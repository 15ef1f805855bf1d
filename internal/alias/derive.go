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

// Derive flattens the aliases that an edit affects. It is the callback for publish.Options.Derive.
func (s *Service) Derive(tx *publish.Tx, changed []publish.Changed) error {
	if s.publisher == nil {
		return nil // not open yet
	}
	d := derivation{s: s, tx: tx, room: maxInEdit,
		keys: map[Key]bool{}, followers: map[Key]bool{}, subtrees: map[dnsname.Name]bool{}}
	if ed := s.edits[tx]; ed != nil {
		d.written, d.room = ed.written, maxInEdit-ed.followed
	}
	for _, c := range changed {
		if err := d.addChangedZone(c); err != nil {
			return err
		}
	}
	if err := d.collectSubtrees(); err != nil || len(d.keys)+len(d.followers) == 0 {
		return err
	}
	f := s.flattener(tx)
	f.edit.followed += len(d.followers)
	maps.Copy(d.keys, d.followers)
	for _, k := range slices.SortedFunc(maps.Keys(d.keys), Key.compare) { // equal edits produce equal changes
		if err := f.flatten(k); err != nil {
			return err
		}
	}
	return f.checkQuotas()
}

// derivation collects the aliases that an edit affects.
type derivation struct {
	s         *Service
	tx        *publish.Tx
	written   map[Key]bool          // edit.written
	keys      map[Key]bool          // aliases whose own record set or zone changed
	followers map[Key]bool          // aliases that depend on a changed name
	room      int                   // how many more followers this edit may flatten
	subtrees  map[dnsname.Name]bool // names added by addSubtree
}

func (d *derivation) addChangedZone(c publish.Changed) error {
	if c.Deleted || c.Whole {
		d.addSubtree(c.Zone.Name)
		d.addZone(c.Zone)
	}
	if c.Whole {
		return d.tx.SetsOfType(c.Zone.ID, rr.TypeALIAS, func(n dnsname.Name) bool {
			d.keys[Key{c.Zone.ID, n}] = true
			return true
		})
	}
	for _, ch := range c.Sets {
		if err := d.addChangedSet(c.Zone, ch); err != nil {
			return err
		}
	}
	return nil
}

// addChangedSet adds the aliases that a changed record set affects: the ALIAS at its name, and every ALIAS whose path
// includes the name.
func (d *derivation) addChangedSet(z zone.Zone, ch store.SetChange) error {
	s := ch.After
	if s == nil {
		s = ch.Before
	}
	k := Key{z.ID, s.Name}
	hidden := ch.Before != nil && ch.Before.Hidden || ch.After != nil && ch.After.Hidden
	switch {
	case s.Type == rr.TypeALIAS:
		d.keys[k] = true
	case hidden && d.written[k]:
		return nil // derived by this edit; no path includes it
	case hidden:
		d.keys[k] = true
	}
	if !d.s.hasAliases() {
		return nil
	}
	return d.addDependents(z, s, ch.Before == nil || ch.After == nil || ch.Before.Hidden != ch.After.Hidden)
}

// addDependents adds the aliases whose path includes the name of a changed record set. existenceChanged means that the
// record set was created or deleted.
func (d *derivation) addDependents(z zone.Zone, s *zone.RecordSet, existenceChanged bool) error {
	if err := d.addAt(s.Name); err != nil {
		return err
	}
	if existenceChanged { // a name above may exist only because of this one, except the apex
		for n := s.Name; n != z.Name && n.Parent() != z.Name; {
			n = n.Parent()
			if err := d.addAt(n); err != nil {
				return err
			}
		}
	}
	if s.Type == rr.TypeSOA && existenceChanged || s.Type == rr.TypeDNAME || s.Type == rr.TypeNS && s.Name != z.Name {
		d.addSubtree(s.Name) // a zone, a zone cut or a DNAME affects all names below it
	}
	if s.Name.IsWildcard() {
		d.addSubtree(s.Name.Parent())
	}
	if existenceChanged {
		return d.addWildcards(z, s.Name)
	}
	return nil
}

// addWildcards adds the subtrees of the wildcards above a name. A wildcard stops applying to names whose closest
// encloser was created, and applies again when the encloser is deleted.
func (d *derivation) addWildcards(z zone.Zone, n dnsname.Name) error {
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
			d.addSubtree(n)
		}
	}
	return nil
}

// addAt adds the aliases that depend on a name, or leaves them to Run if they are too many for one edit.
func (d *derivation) addAt(n dnsname.Name) error {
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

// addSubtree marks a name: collectSubtrees adds the aliases that depend on the name or on a name below it.
func (d *derivation) addSubtree(n dnsname.Name) { d.subtrees[n] = true }

// collectSubtrees does what addAt does, for the names of addSubtree and all names below them.
func (d *derivation) collectSubtrees() error {
	// sorted: equal edits fill the room with the same aliases
	for _, n := range slices.SortedFunc(maps.Keys(d.subtrees), dnsname.Name.Compare) {
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

// addZone adds the aliases in a zone.
func (d *derivation) addZone(z zone.Zone) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	for n := range d.s.index.byZone[z.ID] {
		d.keys[Key{z.ID, n}] = true
	}
}
