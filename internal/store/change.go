package store

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/zone"
)

// Actor is who makes a change, and through which door.
type Actor struct {
	Who       string // the token or user
	Project   string
	Door      string // "designate", "cli", "mec" ...
	RequestID string
}

// Change is one commit to one zone, as the journal keeps it.
type Change struct {
	Zone    uuid.UUID
	Commit  uint64 // number of the edit in the whole store
	Group   uint64 // number of the group that made it durable: that of the group's first edit
	Time    time.Time
	Actor   Actor
	Note    string // what was done in a word: "create", "import", "rollback to 1700000000" ...
	From    uint32 // serial before; 0 when the zone was created
	To      uint32 // serial after; equal to From when nothing served changed
	ZoneTTL uint32 // of the sets that have none of their own
	Sets    []SetChange
	Whole   bool // too large to keep: the sets are left out

	Retimed bool   // the zone's own TTL changed, and with it every set that has none, of which Sets says nothing
	TTLFrom uint32 // of the zone before; only when Retimed

	// Damage is why the row cannot be read. Then it is Whole, and only Zone and Commit are sure to be there.
	Damage error
}

// SetChange is what happened to one record set. Before or After is nil when it did not exist.
type SetChange struct {
	Before, After *zone.RecordSet
}

// rowOf is the row a set has or had in Sets.
func rowOf(s *zone.RecordSet) []byte {
	if s == nil {
		return nil
	}
	return encodeSet(*s, setNumber(s.ID))
}

// A change's row is binary, like those of zones and for the same reason: a version 1, then fields. Builds that know of
// no change of a zone's TTL must not go back over one, so to them it is Whole; what makes it complete stands behind
// all they read.
//
// Behind everything else stands how far back the number of the group is, when it is not the change's own. Rows of
// earlier builds have none. In a row that is Whole such builds would take it for a TTL, so that one has another
// version.
const (
	changeRowVersion = 1
	wholeInGroup     = 2 // Whole, and the group follows
)

func encodeChange(c Change) []byte {
	b := make([]byte, 1, 256)
	b[0] = changeRowVersion
	grouped := c.Group != 0 && c.Group != c.Commit
	if grouped && c.Whole {
		b[0] = wholeInGroup
	}
	b = binary.AppendVarint(b, micros(c.Time))
	for _, s := range []string{c.Actor.Who, c.Actor.Project, c.Actor.Door, c.Actor.RequestID, c.Note} {
		b = appendString(b, s)
	}
	for _, n := range []uint64{uint64(c.From), uint64(c.To), uint64(c.ZoneTTL)} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, 0)
	if c.Whole || c.Retimed {
		b[len(b)-1] = 1
	}
	b = binary.AppendUvarint(b, uint64(len(c.Sets)))
	for _, s := range c.Sets {
		either := cmp.Or(s.After, s.Before)
		b = appendString(b, string(SetKey(either.Zone, either.Name, either.Type)))
		b = appendString(b, string(rowOf(s.Before)))
		b = appendString(b, string(rowOf(s.After)))
	}
	if c.Retimed && !c.Whole {
		b = binary.AppendUvarint(b, uint64(c.TTLFrom))
	}
	if grouped {
		b = binary.AppendUvarint(b, c.Commit-c.Group)
	}
	return b
}

// decodeChange reads a row of the journal. When that fails it returns what it could read before, without the sets.
func (v View) decodeChange(key, value []byte) (Change, error) {
	bad := fmt.Errorf("journal row %x: %w", key, errRow)
	if len(key) != 24 {
		return Change{}, bad
	}
	c := Change{Zone: uuid.UUID(key[:16]), Commit: binary.BigEndian.Uint64(key[16:])}
	c.Group = c.Commit
	unread := c
	if len(value) == 0 || value[0] != changeRowVersion && value[0] != wholeInGroup {
		return unread, bad
	}
	r := rowReader{b: value[1:]}
	c.Time = fromMicros(r.varint())
	c.Actor = Actor{Who: r.string(), Project: r.string(), Door: r.string(), RequestID: r.string()}
	c.Note = r.string()
	c.From, c.To, c.ZoneTTL = uint32(r.uvarint()), uint32(r.uvarint()), uint32(r.uvarint())
	whole := r.take(1)
	if r.bad {
		return unread, bad
	}
	unread = c
	sets, err := v.setChanges(&r, c.Zone)
	c.Sets, c.Whole = sets, whole[0] == 1
	if c.Whole && value[0] == changeRowVersion && len(r.b) > 0 {
		c.Whole, c.Retimed, c.TTLFrom = false, true, uint32(r.uvarint())
	}
	if len(r.b) > 0 || value[0] == wholeInGroup {
		back := r.uvarint()
		r.bad = r.bad || back >= c.Commit
		c.Group -= back
	}
	if err != nil {
		return unread, fmt.Errorf("journal row %x: %w", key, err)
	}
	if r.bad || c.Whole && len(sets) > 0 {
		return unread, bad
	}
	return c, nil
}

// setChanges reads the sets of a change, which are all of its zone.
func (v View) setChanges(r *rowReader, zoneID uuid.UUID) (out []SetChange, err error) {
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		set, before, after := r.take(r.uvarint()), r.take(r.uvarint()), r.take(r.uvarint())
		if r.bad {
			break
		}
		var s SetChange
		if s.Before, err = v.setOf(set, before); err != nil {
			return nil, err
		}
		if s.After, err = v.setOf(set, after); err != nil {
			return nil, err
		}
		if s.Before == nil && s.After == nil || !bytes.HasPrefix(set, zoneID[:]) {
			return nil, errRow
		}
		out = append(out, s)
	}
	return out, nil
}

// setOf reads a row of a change; an empty one is none.
func (v View) setOf(key, row []byte) (*zone.RecordSet, error) {
	if len(row) == 0 {
		return nil, nil
	}
	s, err := v.set(key, row)
	return &s, err
}

// Change returns the change of a zone with a commit number, or ErrNotFound.
func (v View) Change(zoneID uuid.UUID, commit uint64) (Change, error) {
	key := JournalKey(zoneID, commit)
	b := v.r.Get(Journal, key)
	if b == nil {
		return Change{}, fmt.Errorf("change %d of zone %s: %w", commit, zoneID, ErrNotFound)
	}
	return v.decodeChange(key, b)
}

// Changes walks the journal of a zone, newest first, until fn returns false or an error. before is the commit number
// to start below; 0 starts at the newest. A row that cannot be read is one with Damage: there are others behind it.
func (v View) Changes(zoneID uuid.UUID, before uint64, fn func(Change) (bool, error)) error {
	var from []byte
	if before > 0 {
		from = JournalKey(zoneID, before-1)
	}
	var err error
	v.r.ScanBack(Journal, zoneID[:], from, func(key, value []byte) bool {
		c, damage := v.decodeChange(key, value)
		if c.Commit == 0 {
			return true // no key of ours; whoever needs the change that it was misses a step of the serial
		}
		if c.Damage = damage; damage != nil {
			c.Whole = true
		}
		var more bool
		more, err = fn(c)
		return more && err == nil
	})
	return err
}
