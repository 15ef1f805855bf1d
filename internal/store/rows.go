package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// zoneRow is a zone in Zones: JSON, because zones are few and gain fields over the years.
type zoneRow struct {
	Name        string            `json:"name"`
	Project     string            `json:"project"`
	Kind        zone.Kind         `json:"kind"`
	Email       string            `json:"email,omitempty"`
	TTL         uint32            `json:"ttl"`
	Serial      uint32            `json:"serial"`
	Description *string           `json:"description,omitempty"`
	Pool        uuid.UUID         `json:"pool"`
	Masters     []string          `json:"masters,omitempty"`
	Attributes  map[string]string `json:"attributes,omitempty"`
	Version     int               `json:"version"`
	Created     int64             `json:"created"` // microseconds since 1970
	Updated     int64             `json:"updated,omitempty"`
	Sets        int               `json:"sets"`
	Records     int               `json:"records"`
}

func encodeZone(z zone.Zone) ([]byte, error) {
	return json.Marshal(zoneRow{z.Name.String(), z.Project, z.Kind, z.Email, z.TTL, z.Serial, z.Description, z.Pool,
		z.Masters, z.Attributes, z.Version, micros(z.Created), micros(z.Updated), z.Sets, z.Records})
}

func decodeZone(key, value []byte) (zone.Zone, error) {
	var r zoneRow
	if err := json.Unmarshal(value, &r); err != nil {
		return zone.Zone{}, fmt.Errorf("zone row %x: %w", key, err)
	}
	name, err := dnsname.Parse(r.Name)
	if err != nil || len(key) != 16 {
		return zone.Zone{}, fmt.Errorf("zone row %x: %w", key, errors.Join(err, errRow))
	}
	return zone.Zone{ID: uuid.UUID(key), Name: name, Project: r.Project, Kind: r.Kind, Email: r.Email, TTL: r.TTL,
		Serial: r.Serial, Description: r.Description, Pool: r.Pool, Masters: r.Masters, Attributes: r.Attributes,
		Version: r.Version, Created: fromMicros(r.Created), Updated: fromMicros(r.Updated),
		Sets: r.Sets, Records: r.Records}, nil
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

// A record set's row is binary, because there are millions: flags 1, then as varints the number of its id, version,
// created, updated; TTL and description where the flags say so; the count of records, and each with its length.
const (
	rowTTL = 1 << iota
	rowDescription
	rowManaged
)

var errRow = errors.New("not a row of this store")

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
		b = binary.AppendUvarint(b, uint64(len(*s.Description)))
		b = append(b, *s.Description...)
	}
	if s.Managed {
		b[0] |= rowManaged
	}
	b = binary.AppendUvarint(b, uint64(len(s.Data)))
	for _, d := range s.Data {
		b = binary.AppendUvarint(b, uint64(len(d)))
		b = append(b, d...)
	}
	return b
}

// rowReader takes a row apart; after the first mistake everything it returns is zero.
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

func (r *rowReader) string() string {
	n := r.uvarint()
	if r.bad || n > uint64(len(r.b)) {
		r.bad = true
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

// decodeSet reads a row of Sets. The id is left to the caller, who has the secret; num is the number in it.
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
		ttl := uint32(r.uvarint())
		s.TTL = &ttl
	}
	if value[0]&rowDescription != 0 {
		d := r.string()
		s.Description = &d
	}
	s.Managed = value[0]&rowManaged != 0
	s.Data = r.data()
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

// decodeServed reads of a row only what goes on the wire: loading a million rows must not make what nobody asks for.
func decodeServed(key, value []byte, zoneTTL uint32) (rr.Set, error) {
	s, _, err := decodeSet(key, value)
	return s.Served(zoneTTL), err
}
