package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// bbolt writes its two meta pages alternately: one has the newest commit, the other the previous commit. Each has a
// checksum, and bbolt uses the older page when the newer one is damaged. That is correct after a torn write, but when a
// meta page is damaged later, an acknowledged commit is lost. Therefore
//
//   - Close writes the newest commit to both pages (mirror): after a clean shutdown, the loss of one costs nothing;
//   - Open reports a damaged page (tornMeta), because after a crash the last change may be missing.
//
// The header of the page and the 64 bytes of content are in its first sector, which a disk writes atomically.

const tornMeta = "one of its two meta pages is damaged, so the store was opened with the other one: if the server " +
	"did not shut down cleanly, its last change may be missing; check the disk"

// meta is the content of a meta page.
type meta struct {
	pageSize, root, freelist, pages, txid uint64

	slot  int    // 0 or 1: which of the two pages it is
	bytes []byte // header and content
}

// readMeta returns the meta page that bbolt would use, and reports whether the other one is damaged. When the first is
// damaged, the page size is unknown, and readMeta searches for the second at every size, like bbolt.
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

// mirror writes m to the other meta page, with a transaction number one smaller, and syncs the file. A backup by bbolt
// has two such pages.
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

// metaSum computes bbolt's checksum of the content of a meta page.
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

// parseMeta parses a meta page.
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
