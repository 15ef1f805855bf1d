package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zone"
)

// A zone's row is binary: version 1, then the fields. Every change of a zone reads and writes the row, and JSON took a
// tenth of the time of a change. Strings have their length in front, numbers are varints, and optional fields have a
// flag. New fields are added at the end, so a row of an older version ends before them.
const zoneRowVersion = 1

func encodeZone(z zone.Zone) []byte {
	b := make([]byte, 1, 160)
	b[0] = zoneRowVersion
	for _, s := range []string{z.Name.Wire(), z.Project, string(z.Kind), z.Email} {
		b = appendString(b, s)
	}
	for _, n := range []uint64{uint64(z.TTL), uint64(z.Serial), uint64(z.Version), uint64(z.Sets), uint64(z.Records)} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, micros(z.Created))
	b = binary.AppendVarint(b, micros(z.Updated))
	b = append(b, z.Pool[:]...)
	if z.Description == nil {
		b = append(b, 0)
	} else {
		b = appendString(append(b, 1), *z.Description)
	}
	b = binary.AppendUvarint(b, uint64(len(z.Masters)))
	for _, m := range z.Masters {
		b = appendString(b, m)
	}
	b = binary.AppendUvarint(b, uint64(len(z.Attributes)))
	for _, k := range slices.Sorted(maps.Keys(z.Attributes)) {
		b = appendString(appendString(b, k), z.Attributes[k])
	}
	b = binary.AppendUvarint(b, uint64(z.Bytes))
	if z.Changes < 0 {
		return b
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(z.Changes)), uint64(z.ChangeBytes))
	if z.MastersBy == zone.UnknownNamer && z.Spelling == "" { // most zones have no masters
		return b
	}
	b = binary.AppendUvarint(b, uint64(z.MastersBy))
	if z.Spelling == "" {
		return b
	}
	return appendString(b, z.Spelling)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func decodeZone(key, value []byte) (zone.Zone, error) {
	bad := fmt.Errorf("zone row %x: %w", key, errRow)
	if len(key) != 16 || len(value) == 0 || value[0] != zoneRowVersion {
		return zone.Zone{}, bad
	}
	r := rowReader{b: value[1:]}
	z := zone.Zone{ID: uuid.UUID(key)}
	name, _, err := dnsname.FromWire([]byte(r.string()))
	z.Name, z.Project, z.Kind, z.Email = name, r.string(), zone.Kind(r.string()), r.string()
	z.TTL, z.Serial = uint32(r.uvarint()), uint32(r.uvarint())
	z.Version, z.Sets, z.Records = int(r.uvarint()), int(r.uvarint()), int(r.uvarint())
	z.Created, z.Updated = fromMicros(r.varint()), fromMicros(r.varint())
	copy(z.Pool[:], r.take(16))
	if flag := r.take(1); len(flag) == 1 && flag[0] == 1 {
		z.Description = new(r.string())
	}
	if masters := r.data(); len(masters) > 0 {
		z.Masters = masters
	}
	for n := r.uvarint(); n > 0 && !r.bad; n-- {
		if z.Attributes == nil {
			z.Attributes = map[string]string{}
		}
		k := r.string()
		z.Attributes[k] = r.string()
	}
	if len(r.b) > 0 { // a row of an older version ends here
		z.Bytes = int(r.uvarint())
	}
	if z.Changes = -1; len(r.b) > 0 { // or here
		z.Changes, z.ChangeBytes = int(r.uvarint()), int(r.uvarint())
	}
	if len(r.b) > 0 { // or here
		z.MastersBy = zone.Namer(r.uvarint())
	}
	if len(r.b) > 0 { // or here
		z.Spelling = r.string()
	}
	if r.bad || err != nil {
		return zone.Zone{}, bad
	}
	return z, nil
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// A record set's row is binary, because there are millions of them. It has one byte of flags, then as varints the
// number of its ID, the version, and the times of creation and update. The TTL and the description follow when the
// flags say so. The number of records and the records, each with its length, follow.
//
// With rowSpelled, the spelling of the name comes after the records, and then the records as they were sent: their
// number, and for each its index among the records and its text. Older versions do not read these fields.
const (
	rowTTL = 1 << iota
	rowDescription
	rowManaged
	rowHidden
	rowSpelled
)

var errRow = errors.New("malformed row")

func encodeSet(s zone.RecordSet, num uint64) []byte {
	b := make([]byte, 1, 40+16*len(s.Data))
	b = binary.AppendUvarint(b, num)
	b = binary.AppendUvarint(b, uint64(s.Version))
	b = binary.AppendVarint(b, micros(s.Created))
	b = binary.AppendVarint(b, micros(s.Updated))
	if s.TTL != nil {
		b[0] |= rowTTL
		b = binary.AppendUvarint(b, uint64(*s.TTL))
	}
	if s.Description != nil {
		b[0] |= rowDescription
		b = appendString(b, *s.Description)
	}
	if s.Managed {
		b[0] |= rowManaged
	}
	if s.Hidden {
		b[0] |= rowHidden
	}
	b = binary.AppendUvarint(b, uint64(len(s.Data)))
	for _, d := range s.Data {
		b = appendString(b, d)
	}
	if s.Spelling == "" && s.Sent == nil {
		return b
	}
	b[0] |= rowSpelled
	b = binary.AppendUvarint(appendString(b, s.Spelling), uint64(len(s.Sent)))
	if s.Sent == nil {
		return b
	}
	index := make(map[string]int, len(s.Data))
	for i, d := range s.Data {
		index[d] = i
	}
	for _, r := range s.Sent {
		b = appendString(binary.AppendUvarint(b, uint64(index[r.Data])), r.Text)
	}
	return b
}

// rowReader reads the fields of a row. After the first error it returns only zero values.
type rowReader struct {
	b   []byte
	bad bool
}

func (r *rowReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	return advance(r, v, n)
}

func (r *rowReader) varint() int64 {
	v, n := binary.Varint(r.b)
	return advance(r, v, n)
}

func advance[T uint64 | int64](r *rowReader, v T, n int) T {
	if n <= 0 || r.bad {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// take returns the next n bytes.
func (r *rowReader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *rowReader) string() string { return string(r.take(r.uvarint())) }

// decodeSet decodes a row of Sets. It does not set the ID: num is the number in the ID, and the caller has the secret.
func decodeSet(key, value []byte) (s zone.RecordSet, num uint64, err error) {
	var ok bool
	s.Zone, s.Name, s.Type, ok = parseSetKey(key)
	if !ok || len(value) == 0 {
		return s, 0, fmt.Errorf("record set row %x: %w", key, errRow)
	}
	r := rowReader{b: value[1:]}
	num = r.uvarint()
	s.Version = int(r.uvarint())
	s.Created = fromMicros(r.varint())
	s.Updated = fromMicros(r.varint())
	if value[0]&rowTTL != 0 {
		s.TTL = new(uint32(r.uvarint()))
	}
	if value[0]&rowDescription != 0 {
		s.Description = new(r.string())
	}
	s.Managed, s.Hidden = value[0]&rowManaged != 0, value[0]&rowHidden != 0
	s.Data = r.data()
	if value[0]&rowSpelled != 0 {
		s.Spelling, s.Sent = r.string(), r.sent(s.Data)
	}
	if r.bad {
		return s, 0, fmt.Errorf("record set row %x: %w", key, errRow)
	}
	return s, num, nil
}

func (r *rowReader) data() []string {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := make([]string, n)
	for i := range out {
		out[i] = r.string()
	}
	return out
}

// sent reads the records as they were sent.
func (r *rowReader) sent(data []string) []zone.Sent {
	n := r.uvarint()
	if r.bad || n > uint64(len(data)) {
		r.bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	out := make([]zone.Sent, n)
	for i := range out {
		at, text := r.uvarint(), r.string()
		if r.bad || at >= uint64(len(data)) {
			r.bad = true
			return nil
		}
		out[i] = zone.Sent{Data: data[at], Text: text}
	}
	return out
}
