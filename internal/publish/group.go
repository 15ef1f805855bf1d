package publish

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// Group is a set of edits that one Update of the store makes durable together. A group has one number and becomes one
// served version: of the serials that its edits gave to a zone, only the last is ever served.
type Group struct {
	Number  uint64         // number of its first edit in the commit log; the number of the next group is larger
	Changes []store.Change // changes of zones, in the order of the edits

	edits []*request
	start time.Time
	next  *request        // an edit that arrived while the group ran, and must run alone
	rows  *store.Recorder // nil when no BeforeDurable needs the rows
}

// groupVersion is the first byte of a marshaled group. The number follows as a varint, then the rows in the format of
// store.Recorder, then the CRC-32C of everything before it, big endian.
const groupVersion = 1

var (
	errGroup   = errors.New("not a group that this program can apply")
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// MarshalBinary returns the group in the form that Apply takes: its number and all rows that it writes, in order.
func (g *Group) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, 1+binary.MaxVarintLen64+len(g.rows.Rows)+crc32.Size)
	b = binary.AppendUvarint(append(b, groupVersion), g.Number)
	b = append(b, g.rows.Rows...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// replayedGroup is a group that parseGroup read.
type replayedGroup struct {
	number  uint64
	rows    []byte
	written store.Written
}

// parseGroup parses the output of MarshalBinary.
func parseGroup(b []byte) (*replayedGroup, error) {
	end := len(b) - crc32.Size
	if end < 2 || b[0] != groupVersion || crc32.Checksum(b[:end], castagnoli) != binary.BigEndian.Uint32(b[end:]) {
		return nil, errGroup
	}
	number, n := binary.Uvarint(b[1:end])
	if n <= 0 {
		return nil, errGroup
	}
	d := &replayedGroup{number: number, rows: b[1+n : end]}
	var err error
	d.written, err = store.ReadWritten(d.rows)
	return d, err
}

// recorded returns the length of the rows recorded so far, in bytes.
func (g *Group) recorded() int {
	if g.rows == nil {
		return 0
	}
	return len(g.rows.Rows)
}

// truncateRows drops the recorded rows after the first n bytes: an edit wrote them and was undone.
func (g *Group) truncateRows(n int) {
	if g.rows != nil {
		g.rows.Rows = g.rows.Rows[:n]
	}
}
