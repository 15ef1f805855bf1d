package publish

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// Group is the edits that one step of the store makes durable together: one number, one durable step, one served
// version. Of the serials that its edits gave to a zone, only the last is ever served.
type Group struct {
	Number  uint64         // that of its first edit in the commit log; the next group's is larger
	Changes []store.Change // of zones, in the order of the edits

	edits []*request
	start time.Time
	next  *request        // came while the edits ran, and must run alone
	rows  *store.Recorder // nil: nobody wants them
}

// groupVersion is the first byte of a group as bytes. The number follows as a varint, then the rows as store.Recorder
// keeps them, then the CRC-32C of all that, big endian.
const groupVersion = 1

var (
	errGroup   = errors.New("not a group that this program can apply")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// MarshalBinary returns the group as Apply takes it: its number and all rows that it writes, in order.
func (g *Group) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 1+binary.MaxVarintLen64+len(g.rows.Rows)+crc32.Size)
	b = binary.AppendUvarint(append(b, groupVersion), g.Number)
	b = append(b, g.rows.Rows...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// decided is a group as bytes, taken apart.
type decided struct {
	number  uint64
	rows    []byte
	written store.Written
}

// parseGroup reads what MarshalBinary returned.
func parseGroup(b []byte) (*decided, error) {
	end := len(b) - crc32.Size
	if end < 2 || b[0] != groupVersion || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return nil, errGroup
	}
	number, n := binary.Uvarint(b[1:end])
	if n <= 0 {
		return nil, errGroup
	}
	d := &decided{number: number, rows: b[1+n : end]}
	var err error
	d.written, err = store.ReadWritten(d.rows)
	return d, err
}

// recorded returns how many bytes of rows the group has.
func (g *Group) recorded() int {
	if g.rows == nil {
		return 0
	}
	return len(g.rows.Rows)
}

// forget drops the rows behind the first n bytes, which an edit wrote and took back.
func (g *Group) forget(n int) {
	if g.rows != nil {
		g.rows.Rows = g.rows.Rows[:n]
	}
}
