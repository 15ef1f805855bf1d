package zonefile

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// Stage keeps the records of a whole zone on disk and returns them in canonical order. Whatever the size of the zone,
// it needs about 1.5 MiB of memory while records are added. While they are read, it needs 16 KiB for each MiB of
// them.
//
// Records are collected in runs of runSize bytes. Each run is sorted and written; reading merges the runs.
type Stage struct {
	f       *os.File
	run     []byte // records of the current run
	order   []int  // offset of each of them in run
	ends    []int64
	records int
	bytes   int64
	err     error
}

// Sizes of a run, and of the buffers to read and write it.
const (
	runSize  = 1 << 20
	readRun  = 16 << 10
	writeRun = 64 << 10
)

// NewStage returns an empty Stage in a TempFile in dir.
func NewStage(dir *os.Root) (*Stage, error) {
	f, err := TempFile(dir)
	if err != nil {
		return nil, err
	}
	return &Stage{f: f}, nil
}

// TempFile returns a new file in dir. It has no name, so that it is gone when it is closed or the process ends.
func TempFile(dir *os.Root) (*os.File, error) {
	name := "stage-" + rand.Text()
	f, err := dir.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := dir.Remove(name); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Close frees the file.
func (s *Stage) Close() error { return s.f.Close() }

// Records returns the number of records.
func (s *Stage) Records() int { return s.records }

// Bytes returns the size of the records: their names and data, and ten bytes for each.
func (s *Stage) Bytes() int64 { return s.bytes }

// Err returns the error that ended the last iteration over Sets early. A caller that commits the sets must check it
// before the commit ends: otherwise the missing sets would be deleted.
func (s *Stage) Err() error { return s.err }

// Add adds a record. It must not be called after Sets.
func (s *Stage) Add(r Record) error {
	from := len(s.run)
	s.run = appendStaged(s.run, r)
	s.order = append(s.order, from)
	s.records++
	s.bytes += int64(len(s.run) - from)
	if len(s.run) < runSize {
		return nil
	}
	return s.flush()
}

// appendStaged appends a record in the form that cursor reads:
//
//	key length 2, key, TTL 4, data length 2, data
//
// The key is that of the name, a 0x00 and the type. It sorts by name, then by type, and a name with all its types
// comes before the names below it. When the name has a spelling, the length of the key is marked, and the length of the
// spelling (2) and the spelling follow the data.
func appendStaged(b []byte, r Record) []byte {
	from := len(b)
	b = append(b, 0, 0)
	b = append(r.Name.AppendKey(b), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(r.Type))
	head := uint16(len(b) - from - 2)
	if r.Spelling != "" {
		head |= markSpelled
	}
	binary.BigEndian.PutUint16(b[from:], head)
	b = binary.BigEndian.AppendUint32(b, r.TTL)
	b = binary.BigEndian.AppendUint16(b, uint16(len(r.Data)))
	b = append(b, r.Data...)
	if r.Spelling == "" {
		return b
	}
	return append(binary.BigEndian.AppendUint16(b, uint16(len(r.Spelling))), r.Spelling...)
}

const (
	keyTail     = 3       // 0x00 and the type after the key of the name
	markSpelled = 1 << 15 // marks the length of a key, which is below 1024
)

// stagedKey returns the key of the record at an offset.
func (s *Stage) stagedKey(at int) []byte {
	n := int(binary.BigEndian.Uint16(s.run[at:]) &^ markSpelled)
	return s.run[at+2 : at+2+n]
}

// stagedRecord returns the whole record at an offset.
func (s *Stage) stagedRecord(at int) []byte {
	end := at + 2 + len(s.stagedKey(at)) + 6
	end += int(binary.BigEndian.Uint16(s.run[end-2:]))
	if binary.BigEndian.Uint16(s.run[at:])&markSpelled != 0 {
		end += 2 + int(binary.BigEndian.Uint16(s.run[end:]))
	}
	return s.run[at:end]
}

// Flush writes all records to disk and frees the memory, so that a Stage that waits to be read needs none.
func (s *Stage) Flush() error {
	err := s.flush()
	s.run, s.order = nil, nil
	return err
}

// flush writes the current run.
func (s *Stage) flush() error {
	if len(s.order) == 0 {
		return nil
	}
	slices.SortFunc(s.order, func(a, b int) int {
		return cmp.Or(bytes.Compare(s.stagedKey(a), s.stagedKey(b)), cmp.Compare(a, b))
	})
	out := bufio.NewWriterSize(s.f, writeRun)
	for _, at := range s.order {
		_, _ = out.Write(s.stagedRecord(at)) // Flush returns the error
	}
	if err := out.Flush(); err != nil {
		return err
	}
	s.ends = append(s.ends, s.bytes)
	s.run, s.order = s.run[:0], s.order[:0]
	return nil
}

var errStage = errors.New("the staged records of the zone are damaged")

// Sets returns the record sets in canonical order of their names, then by type. The data of a set is as in rr.Set.
// When records of a set have different TTLs, which RFC 2181 §5.2 forbids, the set gets the smallest. The second value
// is the spelling of the name in the first record of the set. After the iteration the caller must check Err.
func (s *Stage) Sets() iter.Seq2[rr.Set, string] {
	return func(yield func(rr.Set, string) bool) {
		var set rr.Set
		var spelling string
		for r := range s.All() {
			if len(set.Data) == 0 || r.Name != set.Name || r.Type != set.Type {
				if len(set.Data) > 0 && !yield(normal(set), spelling) {
					return
				}
				set, spelling = rr.Set{Name: r.Name, Type: r.Type, TTL: r.TTL}, r.Spelling
			}
			set.TTL, set.Data = min(set.TTL, r.TTL), append(set.Data, r.Data)
		}
		if len(set.Data) > 0 && s.err == nil {
			yield(normal(set), spelling)
		}
	}
}

// All returns the records in the order of Sets, those of one set in the order in which they were added. After the
// iteration the caller must check Err.
func (s *Stage) All() iter.Seq[Record] {
	return func(yield func(Record) bool) { s.err = s.walk(yield) }
}

func (s *Stage) walk(yield func(Record) bool) error {
	m, err := s.open()
	if err != nil {
		return err
	}
	var r Record
	var key []byte
	n := 0
	for ; len(m) > 0; n++ {
		c := m[0]
		if !bytes.Equal(c.key, key) {
			if r.Name, r.Type, err = c.owner(key, r.Name); err != nil {
				return err
			}
			key = append(key[:0], c.key...)
		}
		r.TTL, r.Data, r.Spelling = c.ttl, string(c.data), string(c.spelling)
		if !yield(r) {
			return nil
		}
		if err := m.advance(); err != nil {
			return err
		}
	}
	if n != s.records {
		return errStage
	}
	return nil
}

func normal(s rr.Set) rr.Set {
	if len(s.Data) > 1 {
		s.Data = rr.Normal(s.Type, s.Data)
	}
	return s
}

// open returns cursors at the first record of all runs.
func (s *Stage) open() (merge, error) {
	if err := s.Flush(); err != nil {
		return nil, err
	}
	var m merge
	from := int64(0)
	for i, end := range s.ends {
		c := &cursor{run: i, in: bufio.NewReaderSize(io.NewSectionReader(s.f, from, end-from), readRun)}
		if err := c.next(); err != nil {
			return nil, fmt.Errorf("%w: %w", errStage, err)
		}
		m = append(m, c)
		from = end
	}
	heap.Init(&m)
	return m, nil
}

// cursor is a position in a run.
type cursor struct {
	run  int
	in   *bufio.Reader
	buf  []byte
	key  []byte
	ttl  uint32
	data []byte

	spelling []byte
}

// next reads the next record. It returns io.EOF at the end of the run.
func (c *cursor) next() error {
	head, err := c.in.Peek(2)
	if len(head) == 0 && err != nil {
		return err
	}
	if len(head) < 2 {
		return errStage
	}
	marked := binary.BigEndian.Uint16(head)
	key := int(marked &^ markSpelled)
	if c.buf, err = c.read(c.buf[:0], 2+key+6); err != nil {
		return err
	}
	c.ttl = binary.BigEndian.Uint32(c.buf[2+key:])
	if c.buf, err = c.read(c.buf, int(binary.BigEndian.Uint16(c.buf[2+key+4:]))); err != nil {
		return err
	}
	end := len(c.buf)
	if marked&markSpelled != 0 {
		if c.buf, err = c.read(c.buf, 2); err != nil {
			return err
		}
		if c.buf, err = c.read(c.buf, int(binary.BigEndian.Uint16(c.buf[end:]))); err != nil {
			return err
		}
	}
	c.key, c.data, c.spelling = c.buf[2:2+key], c.buf[2+key+6:end], c.buf[min(end+2, len(c.buf)):]
	return nil
}

// read appends the next n bytes to b.
func (c *cursor) read(b []byte, n int) ([]byte, error) {
	from := len(b)
	b = slices.Grow(b, n)[:from+n]
	if _, err := io.ReadFull(c.in, b[from:]); err != nil {
		return b, fmt.Errorf("%w: %w", errStage, err)
	}
	return b, nil
}

// owner returns the name and type of the record. When the name equals the previous one, it returns last.
func (c *cursor) owner(before []byte, last dnsname.Name) (dnsname.Name, rr.Type, error) {
	if len(c.key) < keyTail {
		return last, 0, errStage
	}
	name, t := c.key[:len(c.key)-keyTail], rr.Type(binary.BigEndian.Uint16(c.key[len(c.key)-2:]))
	if len(before) < keyTail || !bytes.Equal(before[:len(before)-keyTail], name) {
		var ok bool
		if last, ok = dnsname.FromKey(name); !ok {
			return last, t, errStage
		}
	}
	return last, t, nil
}

// merge is a heap of the runs by their next records.
type merge []*cursor

func (m merge) Len() int      { return len(m) }
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(x any)   { *m = append(*m, x.(*cursor)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// Less keeps records of one set in the order in which they were added.
func (m merge) Less(i, j int) bool {
	return cmp.Or(bytes.Compare(m[i].key, m[j].key), cmp.Compare(m[i].run, m[j].run)) < 0
}

// advance moves to the next record of all runs.
func (m *merge) advance() error {
	switch err := (*m)[0].next(); {
	case err == nil:
		heap.Fix(m, 0)
	case errors.Is(err, io.EOF) && !errors.Is(err, errStage):
		heap.Pop(m)
	default:
		return err
	}
	return nil
}
