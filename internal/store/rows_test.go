package store

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestZoneRow(t *testing.T) {
	text, now := "words", time.UnixMicro(1_790_000_000_123_456).UTC()
	for _, z := range []zone.Zone{
		{ID: uuid.New(), Name: dnsname.MustParse(`a\.b.example.org.`), Kind: zone.Primary},
		{ID: uuid.New(), Name: dnsname.Root, Project: "p", Kind: zone.Secondary, Email: "a@example.org", TTL: 1<<32 - 1,
			Serial: 1<<32 - 1, Description: &text, Pool: uuid.New(), Masters: []string{"192.0.2.1:53", ""},
			Attributes: map[string]string{"x": "y", "": "z"}, Version: 7, Created: now, Updated: now, Sets: 3, Records: 9,
			Bytes: 99, Changes: 5, ChangeBytes: 77},
		{ID: uuid.New(), Name: dnsname.Root, Kind: zone.Secondary, Masters: []string{"192.0.2.1"}, MastersBy: zone.Tenant},
		{ID: uuid.New(), Name: dnsname.MustParse("example.org."), Kind: zone.Primary, Spelling: "Example.ORG."},
	} {
		row := encodeZone(z)
		got, err := decodeZone(z.ID[:], row)
		if diff := cmp.Diff(z, got, cmpopts.EquateComparable(dnsname.Name{})); diff != "" || err != nil {
			t.Errorf("decodeZone(encodeZone): %v (-want +got)\n%s", err, diff)
		}
		z.MastersBy, z.Spelling = zone.UnknownNamer, ""
		last := len(encodeZone(z)) // the end of the counters
		for n := range row {
			got, err := decodeZone(z.ID[:], row[:n])
			// a row of an older version, without the last fields
			older := n >= last && n <= last+1 && got.Spelling == "" || got.Changes == -1 &&
				(n == last-2 && got.Bytes == z.Bytes || n == last-3 && got.Records == z.Records && got.Bytes == 0)
			if err == nil && !older {
				t.Errorf("a row cut to %d of %d bytes was read", n, len(row))
			}
		}
	}
}

func TestSetRow(t *testing.T) {
	text, ttl := "words", uint32(60)
	id := uuid.New()
	for _, s := range []zone.RecordSet{
		{Zone: id, Name: dnsname.MustParse("example.org."), Type: rr.TypeA},
		{Zone: id, Name: dnsname.MustParse(`\000\001.example.org.`), Type: 65280, TTL: &ttl, Data: []string{"", "x\x00"},
			Description: &text, Managed: true, Version: 2, Created: time.UnixMicro(1).UTC(), Updated: time.UnixMicro(2).UTC()},
		{Zone: id, Name: dnsname.MustParse("www.example.org."), Type: rr.TypeA, Data: []string{"a", "b"},
			Spelling: "WWW.Example.org."},
		{Zone: id, Name: dnsname.MustParse("www.example.org."), Type: rr.TypeA, Data: []string{"a", "b", "c"},
			Sent: []zone.Sent{{Data: "c", Text: "C"}, {Data: "a"}, {Data: "b", Text: "B"}}},
	} {
		row := encodeSet(s, 77)
		got, num, err := decodeSet(SetKey(s.Zone, s.Name, s.Type), row)
		diff := cmp.Diff(s, got, cmpopts.EquateComparable(dnsname.Name{}), cmpopts.EquateEmpty())
		if diff != "" || err != nil || num != 77 {
			t.Errorf("decodeSet(encodeSet): number %d, %v (-want +got)\n%s", num, err, diff)
		}
		for n := range row {
			if _, _, err := decodeSet(SetKey(s.Zone, s.Name, s.Type), row[:n]); err == nil {
				t.Errorf("a row cut to %d of %d bytes was read", n, len(row))
			}
		}
	}
}

func TestChangeRow(t *testing.T) {
	v := View{secret: make([]byte, 32)}
	id := uuid.New()
	set := zone.RecordSet{ID: setID(v.secret, 5), Zone: id, Name: dnsname.MustParse("www.example.org."), Type: rr.TypeA,
		Data: []string{"1234"}, Version: 1, Created: time.UnixMicro(1).UTC()}
	c := Change{Zone: id, Commit: 9, Group: 9, Time: time.UnixMicro(3).UTC(), Actor: Actor{"w", "p", "d", "r"}, Note: "n",
		From: 1, To: 2,
		ZoneTTL: 3, Sets: []SetChange{{Before: &set}, {After: &set}, {&set, &set}}}
	whole, retimed := c, c
	whole.Whole, whole.Sets = true, nil
	retimed.Retimed, retimed.TTLFrom = true, 300
	changes := []Change{c, whole, retimed}
	for _, c := range changes[:3] {
		c.Group = 7
		changes = append(changes, c)
	}
	for _, c := range changes {
		row := encodeChange(c)
		got, err := v.decodeChange(JournalKey(id, 9), row)
		if diff := cmp.Diff(c, got, cmpopts.EquateComparable(dnsname.Name{})); diff != "" || err != nil {
			t.Errorf("decodeChange(encodeChange): %v (-want +got)\n%s", err, diff)
		}
		end := len(row)
		if c.Group != c.Commit && !c.Whole {
			end-- // without its group, it is a row of an older version
			if got, err := v.decodeChange(JournalKey(id, 9), row[:end]); err != nil || got.Group != 9 {
				t.Errorf("a row without a group: %+v, %v, want group 9", got, err)
			}
		}
		for n := range end {
			got, err := v.decodeChange(JournalKey(id, 9), row[:n])
			if err == nil || got.Sets != nil || got.Commit != 9 || got.To != 0 && got.To != 2 {
				t.Errorf("a row cut to %d of %d bytes was read: %v, %v", n, len(row), got, err)
			}
		}
	}
}

// TestForeignChange checks that a change cannot have record sets of another zone.
func TestForeignChange(t *testing.T) {
	v := View{secret: make([]byte, 32)}
	id := uuid.New()
	set := zone.RecordSet{ID: setID(v.secret, 5), Zone: uuid.New(), Name: dnsname.MustParse("www.example.org."),
		Type: rr.TypeA}
	row := encodeChange(Change{Zone: id, Commit: 9, To: 2, Sets: []SetChange{{Before: &set}}})
	if got, err := v.decodeChange(JournalKey(id, 9), row); err == nil || got.Sets != nil {
		t.Errorf("a record set of another zone: %v, %v", got, err)
	}
}

// TestSetIDs checks that an ID leads to its number, and that nobody can guess an ID without the secret.
func TestSetIDs(t *testing.T) {
	a, b := make([]byte, 32), make([]byte, 32)
	b[0] = 1
	for _, n := range []uint64{1, 255, 1 << 40} {
		id := setID(a, n)
		if setNumber(id) != n || id.Version() != 8 || id.Variant() != uuid.RFC4122 {
			t.Errorf("setID(%d) = %s, number %d, version %d", n, id, setNumber(id), id.Version())
		}
		if setID(b, n) == id {
			t.Error("two secrets make the same id")
		}
	}
	if setID(a, 1).String() >= setID(a, 2).String() {
		t.Error("ids do not sort by number")
	}
}
