package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"

	"github.com/nameplane/nameplane/internal/store"
)

// checkFile reads every page in use and says whether bbolt can be let at them: bbolt trusts its file, and follows
// a bad offset into a panic, a bus error, or another page's data. The pages hold no checksums, so a changed byte
// inside a value goes unnoticed; everything that bbolt follows is checked. Reading is by ReadAt, where a bad sector
// is an error and not a signal, and leaves the file in the page cache for the load that follows: bbolt's mapping
// has no read-ahead. The figure for 200 MB is in bench_test.go.
//
// An empty file is a new one: it has nothing to lose, and is what a crash right after creation leaves.
func checkFile(f *os.File) (isNew bool, err error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, fmt.Errorf("open %s: not a regular file", f.Name())
	}
	if info.Size() == 0 {
		return true, nil
	}
	damaged := func(err error) error { return &store.DamagedError{Path: f.Name(), Err: err} }
	m, err := readMeta(f)
	if err != nil {
		return false, damaged(err)
	}
	if err := checkPages(f, uint64(info.Size()), m); err != nil {
		return false, damaged(err)
	}
	return false, nil
}

// checkPages checks all pages that a meta page leads to.
func checkPages(f *os.File, size uint64, m meta) error {
	if need := m.pages * m.pageSize; size < need {
		return fmt.Errorf("truncated: %d bytes of at least %d", size, need)
	}
	readAhead(f, int64(m.pages*m.pageSize))
	c := &checker{f: f, meta: m, used: make([]uint64, m.pages/64+1)}
	c.use(0, 1) // the two meta pages
	if err := c.tree(m.root, span{}); err != nil {
		return err
	}
	return c.freelist()
}

// The layout of a bbolt file, in the byte order of the machine. Page header: id 8, flags 2, count 2, overflow 4.
// Elements follow, 16 bytes each; their positions count from the element itself.
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
	bucketHeader  = 16 // root page, sequence; root 0: the bucket's one page follows inline
)

var order = binary.NativeEndian

// meta is what the newest intact meta page says.
type meta struct {
	pageSize, root, freelist, pages, txid uint64
}

// readMeta finds the meta page that bbolt would use. When the first is torn the page size is unknown, and bbolt
// looks for the second at every size.
func readMeta(f *os.File) (meta, error) {
	first, err := readMetaAt(f, 0)
	if err == nil {
		if second, err := readMetaAt(f, int64(first.pageSize)); err == nil && second.txid > first.txid {
			return second, nil
		}
		return first, nil
	}
	for size := int64(1024); size <= 1<<16; size *= 2 {
		if second, err := readMetaAt(f, size); err == nil && int64(second.pageSize) == size {
			return second, nil
		}
	}
	return meta{}, err
}

func readMetaAt(f *os.File, off int64) (meta, error) {
	buf := make([]byte, headerSize+metaSize)
	if _, err := f.ReadAt(buf, off); errors.Is(err, io.EOF) {
		return meta{}, errors.New("truncated: it ends inside its first pages")
	} else if err != nil {
		return meta{}, err
	}
	return parseMeta(buf)
}

// parseMeta reads a meta page.
func parseMeta(page []byte) (meta, error) {
	b := page[headerSize:]
	if order.Uint32(b) != magic {
		return meta{}, errors.New("it is not a store: the magic number is missing")
	}
	if v := order.Uint32(b[4:]); v != version {
		return meta{}, fmt.Errorf("it has file format %d, this program reads %d", v, version)
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56])
	if sum.Sum64() != order.Uint64(b[56:]) {
		return meta{}, errors.New("the checksum of the first pages is wrong")
	}
	m := meta{pageSize: uint64(order.Uint32(b[8:])), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:])}
	if m.pageSize < 1024 || m.pageSize > 1<<16 || m.pageSize&(m.pageSize-1) != 0 || m.pages > 1<<46 {
		return meta{}, fmt.Errorf("page size %d, pages %d", m.pageSize, m.pages)
	}
	return m, nil
}

// span is the range of keys that a page may hold: from low on and before high; nil: no limit.
type span struct{ low, high []byte }

type checker struct {
	f    *os.File
	meta meta
	used []uint64 // one bit per page
	bufs [][]byte // page buffers to use again
}

// use marks pages first to last and says whether none of them was marked.
func (c *checker) use(first, last uint64) bool {
	for id := first; id <= last; id++ {
		if c.used[id/64]&(1<<(id%64)) != 0 {
			return false
		}
		c.used[id/64] |= 1 << (id % 64)
	}
	return true
}

// read returns page id with its overflow.
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

// tree checks page id and all below it. It ends because no page may be used twice.
func (c *checker) tree(id uint64, keys span) error {
	buf, err := c.read(id)
	if err != nil {
		return err
	}
	err = c.page(id, buf, keys)
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

// page checks the elements of one branch or leaf, which may be inline in a page with that id.
func (c *checker) page(id uint64, buf []byte, keys span) error {
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
		if i > 0 && flags == flagBranch {
			if err := c.tree(last.page, span{last.key, e.key}); err != nil {
				return err
			}
		}
		if err := c.bucket(id, e); err != nil {
			return err
		}
		last = e
	}
	if flags == flagBranch {
		return c.tree(last.page, span{last.key, keys.high})
	}
	return nil
}

// bucket checks the table that an element stands for, if it does.
func (c *checker) bucket(id uint64, e element) error {
	if !e.bucket {
		return nil
	}
	if len(e.value) < bucketHeader {
		return fmt.Errorf("page %d: table %q has no root", id, e.key)
	}
	if root := order.Uint64(e.value); root != 0 {
		return c.tree(root, span{})
	}
	if len(e.value) < bucketHeader+headerSize {
		return fmt.Errorf("page %d: table %q has no page", id, e.key)
	}
	return c.page(id, e.value[bucketHeader:], span{})
}

type element struct {
	key, value []byte
	page       uint64 // of a branch
	bucket     bool   // of a leaf
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
		e.bucket = order.Uint32(b)&bucketElement != 0
		pos, ksize, vsize = int(order.Uint32(b[4:])), int(order.Uint32(b[8:])), int(order.Uint32(b[12:]))
	}
	start := at + pos
	if pos < elementSize || ksize < 0 || vsize < 0 || start > len(buf) || ksize > len(buf)-start || vsize > len(buf)-start-ksize {
		return e, fmt.Errorf("element %d points outside", i)
	}
	e.key = buf[start : start+ksize : start+ksize]
	e.value = buf[start+ksize : start+ksize+vsize]
	return e, nil
}

// freelist checks that no page is both free and used: bbolt would write over it.
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
