package boltstore

import (
	"hash/fnv"
	"io"
)

// backupStep is added to the number of a copy's last transaction. A file and the log beside it are matched by that number,
// and a copy must never match the log of its original: put in the original's place after a crash, it would be taken for
// it, and what happened since would come back.
const backupStep = 1 << 32 // even: the number's last bit says which meta page is which

// backupWriter changes the two meta pages at the beginning of a copy on their way to w.
type backupWriter struct {
	w    io.Writer
	head []byte
}

const metaPages = 2 * 4096

func (b *backupWriter) Write(p []byte) (int, error) {
	if len(b.head) >= metaPages {
		return b.w.Write(p)
	}
	n := min(len(p), metaPages-len(b.head))
	b.head = append(b.head, p[:n]...)
	if len(b.head) < metaPages {
		return n, nil
	}
	stepMeta(b.head)
	stepMeta(b.head[metaPages/2:])
	if _, err := b.w.Write(b.head); err != nil {
		return 0, err
	}
	rest, err := b.w.Write(p[n:])
	return n + rest, err
}

func stepMeta(page []byte) {
	m := page[headerSize : headerSize+metaSize]
	order.PutUint64(m[48:], order.Uint64(m[48:])+backupStep)
	sum := fnv.New64a()
	_, _ = sum.Write(m[:56])
	order.PutUint64(m[56:], sum.Sum64())
}
