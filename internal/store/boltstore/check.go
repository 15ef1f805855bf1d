package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/store"
)

// checked is the result of the check of a file.
type checked struct {
	empty       bool // a new file without content
	noChecksums bool // a store of an older version: its rows have no checksums
	torn        bool // one meta page is damaged
	rows        int

	journal error // damage that affects only the table Journal
}

// checkFile reads every page in use and decides whether bbolt can open the file. bbolt trusts its file: a bad offset
// leads it to a panic, a bus error, or the data of another page. checkFile also verifies the checksums of all rows and
// tables.
//
// It reads with ReadAt, where a bad sector is an error and not a signal. This also leaves the file in the page cache
// for the load that follows, because bbolt's mapping has no read-ahead. The measurements are in
// docs/designs/011-plain-bbolt.md.
//
// An empty file counts as new: it has nothing to lose, and a crash right after creation leaves such a file.
func checkFile(f *os.File) (checked, error) {
	info, err := f.Stat()
	if err != nil {
		return checked{}, err
	}
	if !info.Mode().IsRegular() {
		return checked{}, fmt.Errorf("open %s: not a regular file", f.Name())
	}
	if info.Size() == 0 {
		return checked{empty: true}, nil
	}
	m, torn, err := readMeta(f)
	if err == nil {
		var found checked
		if found, err = checkPages(f, m); err == nil {
			found.torn = torn
			return found, nil
		}
	}
	return checked{}, &store.DamagedError{Path: f.Name(), Err: err}
}

// checkPages checks all pages that can be reached from a meta page.
func checkPages(f *os.File, m meta) (checked, error) {
	info, err := f.Stat()
	if err != nil {
		return checked{}, err
	}
	if size, need := uint64(info.Size()), m.pages*m.pageSize; size < need {
		return checked{}, fmt.Errorf("truncated: %d bytes of at least %d", size, need)
	}
	readAhead(f, int64(m.pages*m.pageSize))
	c := &checker{f: f, meta: m, used: make([]uint64, m.pages/64+1)}
	c.use(0, 1) // the two meta pages
	if err := c.tree(m.root, span{}, &c.root); err != nil {
		return checked{}, err
	}
	return c.result()
}

// These constants describe the layout of a bbolt file, in the byte order of the machine. The page header has the fields
// id (8 bytes), flags (2), count (2) and overflow (4). Elements of 16 bytes follow; their positions count from the
// element itself.
const (
	headerSize  = 16
	elementSize = 16
	metaSize    = 64

	flagBranch   = 0x01
	flagLeaf     = 0x02
	flagFreelist = 0x10

	magic         = 0xED0CDAED
	version       = 2
	noFreelist    = ^uint64(0)
	bucketElement = 0x01
	bucketHeader  = 16 // root page and sequence; when the root is 0, the only page of the bucket follows inline
)

var order = binary.NativeEndian

// span is the range of keys that a page may hold: from low up to, but without, high. nil means no limit.
type span struct{ low, high []byte }

// tableCheck is the result of the check of one table, or of the root of all tables.
type tableCheck struct {
	name     store.Table // empty for the root
	seed     uint32
	sequence uint64 // sum over the rows as the bucket stores it
	sum      uint64 // sum over the rows that were found
	rows     int
	broken   error    // damage of a page that bbolt must not follow
	bad      []string // other damage; the first few reports
	badCount int
}

// maxBad is how many damaged rows of a table are reported individually.
const maxBad = 5

func (t *tableCheck) report(err error) {
	if t.badCount++; len(t.bad) < maxBad {
		t.bad = append(t.bad, err.Error())
	}
}

// damage returns the damage of the table, or nil.
func (t *tableCheck) damage() error {
	if t.broken != nil {
		return t.broken
	}
	if t.badCount == 0 && t.sum != t.sequence {
		return fmt.Errorf("table %s: the sum over its %d rows is wrong: rows are missing or out of date", t.name, t.rows)
	}
	if t.badCount == 0 {
		return nil
	}
	more := ""
	if n := t.badCount - len(t.bad); n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return fmt.Errorf("%s%s", strings.Join(t.bad, ", "), more)
}

// checker checks the pages of one file.
type checker struct {
	f           *os.File
	meta        meta
	used        []uint64 // one bit per page
	bufs        [][]byte // page buffers to reuse
	root        tableCheck
	tables      []*tableCheck
	noChecksums bool
}

// result combines the results of all tables.
func (c *checker) result() (checked, error) {
	found := checked{empty: len(c.tables) == 0 && c.meta.txid <= 1, noChecksums: c.noChecksums}
	if found.empty {
		return found, nil // bbolt created the file, but the tables were not created yet
	}
	var damage []error
	for _, t := range c.tables {
		found.rows += t.rows
	}
	for _, t := range c.tables {
		// An older version that crashed early has all rows in its log, including the row of the format.
		if found.rows == 0 && t.name == store.Meta && hasMark(t.sequence, c.meta.txid) {
			c.noChecksums, found.noChecksums = true, true
		}
	}
	for _, name := range store.Tables {
		if !c.noChecksums && !slices.ContainsFunc(c.tables, func(t *tableCheck) bool { return t.name == name }) {
			damage = append(damage, fmt.Errorf("table %s is missing", name))
		}
	}
	for _, t := range append(c.tables, &c.root) {
		err := t.damage()
		if found.noChecksums {
			err = t.broken // other damage concerns checksums, which this store does not have
		}
		switch {
		case err == nil:
		case t.name == store.Journal:
			found.journal = err
		default:
			damage = append(damage, err)
		}
	}
	if len(damage) == 0 && found.journal == nil {
		damage = append(damage, c.freelist())
	}
	return found, join(damage)
}

// join combines the errors that are not nil into one error of one line.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) < 2 {
		return errors.Join(errs...)
	}
	text := make([]string, len(errs))
	for i, err := range errs {
		text[i] = err.Error()
	}
	return errors.New(strings.Join(text, "; "))
}

// use marks the pages from first to last. It reports whether none of them was marked before.
func (c *checker) use(first, last uint64) bool {
	for id := first; id <= last; id++ {
		if c.used[id/64]&(1<<(id%64)) != 0 {
			return false
		}
		c.used[id/64] |= 1 << (id % 64)
	}
	return true
}

// read returns the page with an ID, including its overflow pages.
func (c *checker) read(id uint64) ([]byte, error) {
	if id < 2 || id >= c.meta.pages {
		return nil, fmt.Errorf("page %d: not one of the %d pages", id, c.meta.pages)
	}
	buf := c.buffer()
	if _, err := c.f.ReadAt(buf, int64(id*c.meta.pageSize)); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if got := order.Uint64(buf); got != id {
		return nil, fmt.Errorf("page %d: says it is page %d", id, got)
	}
	over := uint64(order.Uint32(buf[12:]))
	if id+over >= c.meta.pages {
		return nil, fmt.Errorf("page %d: continues for %d pages, past the end", id, over)
	}
	if !c.use(id, id+over) {
		return nil, fmt.Errorf("page %d: used twice", id)
	}
	if over > 0 {
		buf = append(buf, make([]byte, over*c.meta.pageSize)...)
		if _, err := c.f.ReadAt(buf[c.meta.pageSize:], int64((id+1)*c.meta.pageSize)); err != nil {
			return nil, fmt.Errorf("page %d: %w", id, err)
		}
	}
	return buf, nil
}

// tree checks a page of table t and all pages below it. It terminates because no page may be used twice.
func (c *checker) tree(id uint64, keys span, t *tableCheck) error {
	buf, err := c.read(id)
	if err != nil {
		return err
	}
	err = c.page(id, buf, keys, t)
	if uint64(len(buf)) == c.meta.pageSize {
		c.bufs = append(c.bufs, buf)
	}
	return err
}

func (c *checker) buffer() []byte {
	n := len(c.bufs)
	if n == 0 {
		return make([]byte, c.meta.pageSize)
	}
	buf := c.bufs[n-1]
	c.bufs = c.bufs[:n-1]
	return buf
}

// page checks the elements of one branch or leaf page. The page may be inline in the page with that ID.
func (c *checker) page(id uint64, buf []byte, keys span, t *tableCheck) error {
	flags, count := order.Uint16(buf[8:]), int(order.Uint16(buf[10:]))
	if flags != flagBranch && flags != flagLeaf {
		return fmt.Errorf("page %d: not a page of a table (type %#x)", id, flags)
	}
	if headerSize+count*elementSize > len(buf) || (flags == flagBranch && count == 0) {
		return fmt.Errorf("page %d: %d elements", id, count)
	}
	var last element
	for i := range count {
		e, err := elementAt(buf, i, flags)
		if err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
		low := keys.low
		if i > 0 {
			low = last.key
		}
		cmp := bytes.Compare(e.key, low)
		if (low != nil && cmp < 0) || (i > 0 && cmp == 0) || (keys.high != nil && bytes.Compare(e.key, keys.high) >= 0) {
			return fmt.Errorf("page %d: key %d is out of order", id, i)
		}
		if i == 0 && low != nil && cmp != 0 {
			// bbolt finds all rows here, but would lose the page when it writes it: it searches for the page by its first key.
			t.report(fmt.Errorf("page %d: its first key is not the one that leads to it", id))
		}
		if i > 0 && flags == flagBranch {
			if err := c.tree(last.page, span{last.key, e.key}, t); err != nil {
				return err
			}
		}
		if flags == flagLeaf {
			if err := c.leaf(id, e, t); err != nil {
				return err
			}
		}
		last = e
	}
	if flags == flagBranch {
		return c.tree(last.page, span{last.key, keys.high}, t)
	}
	return nil
}

// leaf checks a row of a table. In the root of all tables, a row is a table.
func (c *checker) leaf(id uint64, e element, t *tableCheck) error {
	if e.flags > bucketElement || (e.flags == bucketElement) != (t == &c.root) {
		return fmt.Errorf("page %d: %q has type %#x", id, e.key, e.flags)
	}
	if t == &c.root {
		return c.table(id, e)
	}
	if t.name == store.Meta && string(e.key) == string(store.KeyFormat) && len(e.value) == 1 && e.value[0] == plainFormat {
		c.noChecksums = true
	}
	t.rows++
	if _, ok := unseal(t.seed, e.key, e.value); !ok {
		t.report(badRow(t.name, e.key))
		return nil
	}
	t.sum += share(e.value)
	return nil
}

// table checks the table of an element of the root. A page that bbolt must not follow is recorded in the tableCheck, so
// that the other tables are checked too.
func (c *checker) table(id uint64, e element) error {
	t := &tableCheck{name: store.Table(e.key)}
	if !slices.Contains(store.Tables, t.name) {
		return fmt.Errorf("page %d: there is no table %q", id, e.key)
	}
	if len(e.value) < bucketHeader {
		return fmt.Errorf("page %d: table %q has no root", id, e.key)
	}
	t.seed, t.sequence = seedOf(t.name), order.Uint64(e.value[8:])
	c.tables = append(c.tables, t)
	if root := order.Uint64(e.value); root != 0 {
		t.broken = c.tree(root, span{}, t)
		return nil
	}
	inline := e.value[bucketHeader:]
	if len(inline) < headerSize {
		return fmt.Errorf("page %d: table %q has no page", id, e.key)
	}
	if order.Uint64(inline) != 0 || order.Uint32(inline[12:]) != 0 || order.Uint16(inline[8:]) != flagLeaf {
		// bbolt would free another page instead of this one.
		return fmt.Errorf("page %d: the page of table %q is damaged", id, e.key)
	}
	t.broken = c.page(id, inline, span{}, t)
	return nil
}

// element is an element of a branch or leaf page.
type element struct {
	key, value []byte
	page       uint64 // child page of a branch element
	flags      uint32 // flags of a leaf element
}

func elementAt(buf []byte, i int, flags uint16) (element, error) {
	at := headerSize + i*elementSize
	b := buf[at:]
	var e element
	var pos, ksize, vsize int
	if flags == flagBranch {
		pos, ksize = int(order.Uint32(b)), int(order.Uint32(b[4:]))
		e.page = order.Uint64(b[8:])
	} else {
		e.flags = order.Uint32(b)
		pos, ksize, vsize = int(order.Uint32(b[4:])), int(order.Uint32(b[8:])), int(order.Uint32(b[12:]))
	}
	start := at + pos
	if pos < elementSize || ksize < 0 || vsize < 0 || start > len(buf) || ksize > len(buf)-start ||
		vsize > len(buf)-start-ksize {
		return e, fmt.Errorf("element %d points outside", i)
	}
	e.key = buf[start : start+ksize : start+ksize]
	e.value = buf[start+ksize : start+ksize+vsize]
	return e, nil
}

// freelist checks that no page is both free and in use: bbolt would overwrite it.
func (c *checker) freelist() error {
	id := c.meta.freelist
	if id == noFreelist {
		return nil
	}
	buf, err := c.read(id)
	if err != nil {
		return err
	}
	if flags := order.Uint16(buf[8:]); flags != flagFreelist {
		return fmt.Errorf("page %d: not the list of free pages (type %#x)", id, flags)
	}
	ids, count := buf[headerSize:], uint64(order.Uint16(buf[10:]))
	if count == 0xffff {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d: list of %d free pages does not fit", id, count)
	}
	for i := range count {
		free := order.Uint64(ids[i*8:])
		if free < 2 || free >= c.meta.pages || !c.use(free, free) {
			return fmt.Errorf("page %d: free page %d is in use", id, free)
		}
	}
	return nil
}
