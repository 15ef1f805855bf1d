package publish_test

import (
	"encoding/binary"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// noWriter is a store.Writer that discards rows.
type noWriter struct{ store.Writer }

func (noWriter) Put(store.Table, []byte, []byte) error { return nil }

// groupOf returns a group with number 1, the given rows, and one more row.
func groupOf(rows []byte, table store.Table, key, value []byte) []byte {
	r := store.Recorder{Writer: noWriter{}, Rows: rows}
	if key != nil {
		_ = r.Put(table, key, value)
	}
	b := append([]byte{1, 1}, r.Rows...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// TestApplyMalformed checks that a group with rows that this program cannot read is refused before it is durable.
func TestApplyMalformed(t *testing.T) {
	var group []byte
	original := openStore(t, filepath.Join(t.TempDir(), "db"))
	p, _ := runOn(t, original, publish.Options{BeforeDurable: func(g *publish.Group) (err error) {
		group, err = g.MarshalBinary()
		return err
	}})
	replica, st := copyOf(t, original, publish.Options{})
	z := newZone(t, p, "example.org.")
	rows := group[2 : len(group)-crc32.Size]
	rows = rows[:len(rows):len(rows)]
	before := rowsOf(t, st)
	a := store.SetKey(z.ID, dnsname.MustParse("a.example.org."), rr.TypeA)
	for name, b := range map[string][]byte{
		"record set": groupOf(rows, store.Sets, a, []byte{0xff}),
		"zone":       groupOf(rows, store.Zones, []byte("short"), []byte{1}),
		"zone name":  groupOf(rows, store.Names, []byte("x"), []byte("short")),
		"journal":    groupOf(rows, store.Journal, []byte("short"), []byte{1}),
		"no number":  groupOf(nil, "", nil, nil),
	} {
		if err := replica.Apply(t.Context(), b); err == nil {
			t.Errorf("%s: Apply = nil", name)
		}
		if rowsOf(t, st) != before {
			t.Errorf("%s: the store changed", name)
		}
	}
	if err := replica.Apply(t.Context(), group); err != nil {
		t.Error(err)
	}
	if got := served(replica, "example.org.", "example.org.", rr.TypeNS); got == "" {
		t.Error("the zone of the whole group is not served")
	}
}
