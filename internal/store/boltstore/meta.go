package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt writes its two meta pages in turn: the newest commit is in one, the commit before in the other. It protects
// each by a checksum, and uses the older one when the newest is damaged. That is what it must do after a torn write, but
// a meta page that was damaged later takes an acknowledged commit with it. So
//
//   - Close writes the newest commit into both (mirror): after an orderly end the loss of one costs nothing;
//   - Open reports a damaged one (tornMeta), because after a crash the last change may be missing.
//
// The page's header and the 64 bytes that count are in its first sector, which a disk writes whole.

const tornMeta = "one of its two meta pages is damaged, so the store was opened by the other one: when the server " +
	"did not stop in order, its last change may be missing; check the disk"

// meta is what a meta page says.
type meta struct {
	pageSize, root, freelist, pages, txid uint64

	slot  int    // 0 or 1: which of the two pages it is
	bytes []byte // header and content
}

// readMeta finds the meta page that bbolt would use, and reports whether the other one is damaged. When the first is
// damaged the page size is unknown, and bbolt looks for the second at every size.
func readMeta(f *os.File) (m meta, torn bool, err error) {
	first, err := readMetaAt(f, 0)
	if err == nil {
		second, err := readMetaAt(f, int64(first.pageSize))
		second.slot = 1
		if err == nil && second.txid > first.txid {
			return second, false, nil
		}
		return first, err != nil, nil
	}
	for size := int64(1024); size <= 1<<16; size *= 2 {
		if second, err := readMetaAt(f, size); err == nil && int64(second.pageSize) == size {
			second.slot = 1
			return second, true, nil
		}
	}
	return meta{}, false, err
}

// mirror writes m into the other meta page, one transaction older, and syncs the file. bbolt's own backup has two such
// pages.
func (m meta) mirror(f *os.File) error {
	page := bytes.Clone(m.bytes)
	other := 1 - m.slot
	order.PutUint64(page, uint64(other))
	content := page[headerSize:]
	order.PutUint64(content[48:], m.txid-1)
	order.PutUint64(content[56:], metaSum(content))
	if _, err := f.WriteAt(page, int64(other)*int64(m.pageSize)); err != nil {
		return err
	}
	return f.Sync()
}

// metaSum returns the checksum that bbolt gives to the content of a meta page.
func metaSum(content []byte) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(content[:56])
	return sum.Sum64()
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
	if metaSum(b) != order.Uint64(b[56:]) {
		return meta{}, errors.New("the checksum of the first pages is wrong")
	}
	m := meta{pageSize: uint64(order.Uint32(b[8:])), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:]), bytes: page}
	if m.pageSize < 1024 || m.pageSize > 1<<16 || m.pageSize&(m.pageSize-1) != 0 || m.pages > 1<<46 {
		return meta{}, fmt.Errorf("page size %d, pages %d", m.pageSize, m.pages)
	}
	return m, nil
}
