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

// Actor is the client that makes a change, and the API that it uses.
type Actor struct {
	Who       string // name of the token or user
	Project   string
	API       string // "designate", "cli", "mec" ...
	RequestID string
}

// Change is one commit to one zone, as the journal stores it.
type Change struct {
	Zone    uuid.UUID
	Commit  uint64 // number of the edit in the whole store
	Group   uint64 // number of the group that made the commit durable: the number of the group's first edit
	Time    time.Time
	Actor   Actor
	Note    string // short description: "create", "import", "rollback to 1700000000" ...
	From    uint32 // serial before the change; 0 when the zone was created
	To      uint32 // serial after the change; equal to From when nothing served changed
	ZoneTTL uint32 // TTL of the sets that have no TTL of their own
	Sets    []SetChange
	Whole   bool // the change was too large to store its sets

	// Retimed means that the TTL of the zone changed, and with it every set that has no TTL of its own. Sets does not list
	// those sets. TTLFrom is the TTL of the zone before; it is set only with Retimed.
	Retimed bool
	TTLFrom uint32

	// Damage is the reason why the row cannot be read. Then Whole is set, and only Zone and Commit are sure to be valid.
	Damage error
}

// SetChange is the change of one record set. Before or After is nil when the set did not exist.
type SetChange struct {
	Before, After *zone.RecordSet
}

// rowOf returns the row that a set has or had in Sets.
func rowOf(s *zone.RecordSet) []byte {
	if s == nil {
		return nil
	}
	return encodeSet(*s, setNumber(s.ID))
}

// A change's row is binary, like the row of a zone and for the same reason: version 1, then the fields. Older versions
// of nameplane do not know changes of a zone's TTL and must not roll back over one. So such a row is Whole for them,
// and the fields that make it complete follow after everything they read.
//
// The distance to the number of the group comes last, when it is not the change's own number. Rows of older versions
// have no such field. In a row that is Whole, older versions would read the field as a TTL, so such a row has another
// version.
const (
	changeRowVersion = 1
	wholeInGroup     = 2 // Whole, and the distance to the group follows
)

func encodeChange(c Change) []byte {
	b := make([]byte, 1, 256)
	b[0] = changeRowVersion
	grouped := c.Group != 0 && c.Group != c.Commit
	if grouped && c.Whole {
		b[0] = wholeInGroup
	}
	b = binary.AppendVarint(b, micros(c.Time))
	for _, s := range []string{c.Actor.Who, c.Actor.Project, c.Actor.API, c.Actor.RequestID, c.Note} {
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

// decodeChange decodes a row of the journal. When that fails, it returns the fields that it could read, without the
// sets.
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
	c.Actor = Actor{Who: r.string(), Project: r.string(), API: r.string(), RequestID: r.string()}
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

// setChanges reads the sets of a change. All of them must belong to the zone.
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

// setOf decodes a set in a row of the journal. It returns nil for an empty row.
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

// Changes calls fn for the changes of a zone, newest first, until fn returns false or an error. It starts below the
// commit number before, or at the newest change when before is 0. For a row that cannot be read, fn gets a Change with
// Damage, because there may be readable rows after it.
func (v View) Changes(zoneID uuid.UUID, before uint64, fn func(Change) (bool, error)) error {
	var from []byte
	if before > 0 {
		from = JournalKey(zoneID, before-1)
	}
	var err error
	v.r.ScanBack(Journal, zoneID[:], from, func(key, value []byte) bool {
		c, damage := v.decodeChange(key, value)
		if c.Commit == 0 {
			return true // not a valid key; a reader that needs this change finds a gap in the serials
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
