package powerdns

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// The changetypes of a PATCH. PowerDNS 4.7 has the first two; EXTEND and PRUNE came with 4.9.12. They change one record
// of a set, so two clients that add records at the same time do not overwrite each other's.
const (
	changeDelete  = "DELETE"
	changeReplace = "REPLACE"
	changeExtend  = "EXTEND"
	changePrune   = "PRUNE"
)

// maxChanges bounds a PATCH to the number of record sets that one entry of the history can hold.
const maxChanges = 10_000

// maxSteps bounds the EXTEND and PRUNE changes of one set in a PATCH. Each of them writes the whole set, while the
// changes of other projects wait: 10,000 of them took eight seconds.
const maxSteps = 100

// patchZone applies all changes of a request with one step of the serial, or none of them.
func (c *call) patchZone() (reply, error) {
	z, err := c.viewZone(c.zone)
	if err != nil {
		return reply{}, err
	}
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	changes, err := c.readChanges(o, z)
	if err != nil {
		return reply{}, err
	}
	var left zone.Zone // the zone after the changes
	var tag string
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("patch of %d record sets", len(changes))
		if z, err = c.zone(tx.View); err != nil {
			return err
		}
		if err := c.ifMatch(tx.View, z); err != nil {
			return err
		}
		if err := c.apply(tx, z, changes); err != nil {
			return err
		}
		return tx.After(z.ID, &left)
	})
	if err != nil {
		return reply{}, err
	}
	h := c.w.Header()
	// PowerDNS sends these headers, so that a client can wait for the new serial at its secondaries.
	h.Set("X-Pdns-Old-Serial", strconv.FormatUint(uint64(z.Serial), 10))
	h.Set("X-Pdns-New-Serial", strconv.FormatUint(uint64(left.Serial), 10))
	err = c.view(func(v store.View) (err error) {
		tag, err = c.rules.Tag(v, left)
		return err
	})
	return reply{status: http.StatusNoContent, tag: tag}, err
}

// readChanges reads the changes of a PATCH.
func (c *call) readChanges(o object, z zone.Zone) ([]change, error) {
	list, ok := o.list("rrsets")
	switch {
	// PowerDNS refuses a PATCH without rrsets. A PATCH with an empty list is accepted.
	case !ok:
		return nil, refuse("No rrsets given in update request")
	case len(list) > maxChanges:
		return nil, refuse("%d RRsets are too many: one request has at most %d", len(list), maxChanges)
	case z.Kind != zone.Primary:
		return nil, refuse("Zone '%s' is of kind Slave: its records are changed at its masters", z.Name)
	}
	type owner struct {
		ref    store.SetRef
		action string
	}
	seen := map[owner]int{}
	out := make([]change, 0, len(list))
	for _, v := range list {
		ch, err := c.readChange(asObject(v), z)
		if err != nil {
			return nil, err
		}
		key := owner{store.SetRef{Name: ch.name, Type: ch.typ}, ch.action}
		// A second REPLACE would undo the first one. EXTEND and PRUNE change one record each, so several of them
		// are usual.
		switch seen[key]++; {
		case seen[key] > 1 && (ch.action == changeDelete || ch.action == changeReplace):
			return nil, refuse("Duplicate RRset %s IN %s with changetype: %s", ch.text, ch.typ, ch.action)
		case seen[key] > maxSteps:
			return nil, ch.refuse(": one request has at most %d changes with changetype %s", maxSteps, ch.action)
		}
		out = append(out, ch)
	}
	return out, nil
}

func (c *call) readChange(o object, z zone.Zone) (change, error) {
	action, err := o.text("changetype")
	if err != nil {
		return change{}, err
	}
	ch, err := readOwner(o)
	if err != nil {
		return ch, err
	}
	switch ch.action = strings.ToUpper(action); ch.action {
	case changeDelete:
		return ch, nil
	case changeReplace:
		if !ch.name.IsIn(z.Name) {
			return ch, ch.refuse(": Name is out of zone")
		}
		err = c.readRecords(o, &ch, true)
		if err == nil {
			err = ch.readComment(o)
		}
		if err == nil && !ch.records && !ch.comments {
			err = refuse("No change for RRset %s IN %s", ch.text, ch.typ)
		}
	case changeExtend, changePrune:
		err = c.readRecords(o, &ch, ch.action == changeExtend)
		switch {
		case err != nil:
		case !ch.records:
			err = refuse("No record provided for PRUNE or EXTEND operation")
		case len(ch.data) != 1:
			err = refuse("Exactly one record should be provided for PRUNE or EXTEND operation")
		}
	default:
		err = refuse("Changetype not understood")
	}
	if err != nil {
		return ch, err
	}
	return ch, ch.check(z.Name)
}

// apply makes the changes in their order inside a commit. A project that the zone is shared with may not change the SOA
// record and the name servers of the zone, as in the zones API: they belong to the zone itself.
func (c *call) apply(tx *publish.Tx, z zone.Zone, changes []change) error {
	for _, ch := range changes {
		if ch.name == z.Name && (ch.typ == rr.TypeSOA || ch.typ == rr.TypeNS) {
			if _, err := c.ownZone(tx.View); err != nil {
				return err
			}
		}
		if err := c.applyOne(tx, z, ch); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) applyOne(tx *publish.Tx, z zone.Zone, ch change) error {
	if ch.action == changeDelete {
		return deleteSet(tx, z, ch)
	}
	sets, err := tx.RecordSetsAt(z.ID, ch.name)
	if err != nil {
		return err
	}
	if err := ch.checkBeside(z, sets); err != nil {
		return err
	}
	was := zone.RecordSet{Zone: z.ID, Name: ch.name, Type: ch.typ}
	i := slices.IndexFunc(sets, func(s zone.RecordSet) bool { return s.Type == ch.typ && !s.Hidden })
	if i >= 0 {
		was = sets[i]
	}
	next := ch.next(was)
	switch {
	case len(next.Data) == 0 && i < 0 && next.Description != nil:
		return ch.refuse(": a comment needs records")
	case len(next.Data) == 0:
		return deleteSet(tx, z, ch)
	}
	if err := c.rules.CheckLocation(tx.View, z, ch.name, ch.typ); err != nil {
		return err
	}
	return c.putSet(tx, z, next, i >= 0)
}

// checkBeside refuses a set that cannot exist beside the other sets of its name.
func (ch *change) checkBeside(z zone.Zone, sets []zone.RecordSet) error {
	if !ch.records {
		return nil
	}
	for _, s := range sets {
		if s.Hidden || s.Type == ch.typ {
			continue
		}
		switch {
		// RFC 1034 §3.6.2: no other data beside a CNAME.
		case ch.typ == rr.TypeCNAME || s.Type == rr.TypeCNAME:
			return ch.refuse(": Conflicts with pre-existing RRset")
		case ch.name == z.Name:
		// RFC 6672 §2.3: a DNAME at the owner of NS records is allowed only at the apex.
		case ch.typ == rr.TypeNS && s.Type == rr.TypeDNAME, ch.typ == rr.TypeDNAME && s.Type == rr.TypeNS:
			return ch.refuse(": Cannot have both NS and DNAME except in zone apex")
		}
	}
	return nil
}

// next returns the set after the change.
func (ch *change) next(s zone.RecordSet) zone.RecordSet {
	same := func(d string) bool { return rr.SameData(ch.typ, d, ch.data[0]) }
	switch {
	case ch.action == changePrune:
		s.Data = slices.DeleteFunc(slices.Clone(s.Data), same)
		return s
	// The record exists: nothing changes, also not the TTL. A client may repeat EXTEND after a timeout.
	case ch.action == changeExtend && slices.ContainsFunc(s.Data, same):
		return s
	case ch.action == changeExtend:
		s.TTL, s.Data = &ch.ttl, append(slices.Clone(s.Data), ch.data...)
		return s
	}
	if ch.records {
		s.TTL, s.Data = &ch.ttl, ch.data
	}
	if ch.comments {
		s.Description = ch.comment
	}
	return s
}

// putSet writes a set. A set that a client wrote is not managed by the server, except for the SOA, whose serial the
// server sets.
func (c *call) putSet(tx *publish.Tx, z zone.Zone, s zone.RecordSet, exists bool) error {
	s.Managed = s.Type == rr.TypeSOA
	if s.Type == rr.TypeSOA && len(s.Data) == 1 {
		s.Data = []string{zone.WithSerial(s.Data[0], z.Serial)}
		if err := setEmail(tx, z, s.Data[0]); err != nil {
			return err
		}
	}
	if exists {
		_, err := tx.UpdateSet(s)
		return err
	}
	if err := c.rules.DropFlattened(tx, s); err != nil {
		return err
	}
	_, err := tx.CreateSet(s)
	return err
}

// setEmail gives the zone the mail address of a new SOA record.
func setEmail(tx *publish.Tx, z zone.Zone, soa string) error {
	data, ok := zone.ParseSOA(soa)
	// The root as RNAME means that nobody is responsible. The zone keeps its address, which it must have.
	if !ok || data.RName.IsRoot() {
		return nil
	}
	now, err := tx.Zone(z.ID)
	if err != nil {
		return err
	}
	now.Email = emailOf(data)
	_, err = tx.UpdateZone(now)
	return err
}

func emailOf(soa zone.SOA) string {
	return soa.RName.Label() + "@" + strings.TrimSuffix(soa.RName.Parent().String(), ".")
}

// deleteSet deletes a set of a client. It is no error if the set does not exist. The SOA record stays, as after a
// dynamic update: dnscontrol deletes it when its configuration has none.
func deleteSet(tx *publish.Tx, z zone.Zone, ch change) error {
	if ch.typ == rr.TypeSOA && ch.name == z.Name {
		return nil
	}
	s, err := tx.RecordSet(z.ID, ch.name, ch.typ)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Hidden {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.DeleteSet(z.ID, ch.name, ch.typ)
}
