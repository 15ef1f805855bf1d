package store

import (
	"encoding/binary"
	"encoding/json"
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
	Commit  uint64 // number of the commit in the whole store
	Time    time.Time
	Actor   Actor
	Note    string // what was done in a word: "create", "import", "rollback to 1700000000" ...
	From    uint32 // serial before; 0 when the zone was created
	To      uint32 // serial after; equal to From when nothing served changed
	ZoneTTL uint32 // of the sets that have none of their own
	Sets    []SetChange
	Whole   bool // too large to keep: the sets are left out
}

// SetChange is what happened to one record set. Before or After is nil when it did not exist.
type SetChange struct {
	Before, After *zone.RecordSet
}

type changeRow struct {
	Time    int64    `json:"t"`
	Actor   Actor    `json:"a"`
	Note    string   `json:"n,omitempty"`
	From    uint32   `json:"f"`
	To      uint32   `json:"s"`
	ZoneTTL uint32   `json:"ttl"`
	Sets    []setRow `json:"r,omitempty"`
	Whole   bool     `json:"w,omitempty"`
}

type setRow struct {
	Key    []byte `json:"k"` // of Sets
	Before []byte `json:"b,omitempty"`
	After  []byte `json:"a,omitempty"`
}

// rowOf is the row a set has or had in Sets.
func rowOf(s *zone.RecordSet) []byte {
	if s == nil {
		return nil
	}
	return encodeSet(*s, setNumber(s.ID))
}

func encodeChange(c Change) ([]byte, error) {
	row := changeRow{micros(c.Time), c.Actor, c.Note, c.From, c.To, c.ZoneTTL, nil, c.Whole}
	for _, s := range c.Sets {
		any := s.After
		if any == nil {
			any = s.Before
		}
		row.Sets = append(row.Sets, setRow{SetKey(any.Zone, any.Name, any.Type), rowOf(s.Before), rowOf(s.After)})
	}
	return json.Marshal(row)
}

func (v View) decodeChange(key, value []byte) (Change, error) {
	var row changeRow
	if err := json.Unmarshal(value, &row); err != nil || len(key) != 24 {
		return Change{}, fmt.Errorf("journal row %x: %w", key, errRow)
	}
	c := Change{uuid.UUID(key[:16]), binary.BigEndian.Uint64(key[16:]), fromMicros(row.Time), row.Actor, row.Note,
		row.From, row.To, row.ZoneTTL, nil, row.Whole}
	for _, r := range row.Sets {
		var s SetChange
		var err error
		if s.Before, err = v.setOf(r.Key, r.Before); err != nil {
			return c, err
		}
		if s.After, err = v.setOf(r.Key, r.After); err != nil {
			return c, err
		}
		c.Sets = append(c.Sets, s)
	}
	return c, nil
}

func (v View) setOf(key, row []byte) (*zone.RecordSet, error) {
	if row == nil {
		return nil, nil
	}
	s, err := v.set(key, row)
	return &s, err
}

// Changes walks the journal of a zone, newest first, until fn returns false or an error. before is the commit number
// to start below; 0 starts at the newest.
func (v View) Changes(zoneID uuid.UUID, before uint64, fn func(Change) (bool, error)) error {
	var from []byte
	if before > 0 {
		from = JournalKey(zoneID, before-1)
	}
	var err error
	v.r.ScanBack(Journal, zoneID[:], from, func(key, value []byte) bool {
		var c Change
		if c, err = v.decodeChange(key, value); err != nil {
			return false
		}
		var more bool
		more, err = fn(c)
		return more && err == nil
	})
	return err
}
