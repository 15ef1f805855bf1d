package boltstore

import (
	"encoding/binary"
	"errors"
	"slices"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// opLog is what an Update wrote, in the order it did, as an entry of the log: for each operation a table 1, a flag 1, and
// key and value with their lengths as varints.
type opLog struct {
	b   []byte
	ops int
	cut bool // it grew too long to be an entry
}

const (
	opDelete = 0
	opPut    = 1
)

func (l *opLog) add(op byte, t store.Table, key, value []byte) {
	if l.cut {
		return
	}
	l.ops++
	l.b = append(l.b, byte(slices.Index(store.Tables, t)), op)
	l.b = binary.AppendUvarint(l.b, uint64(len(key)))
	l.b = append(l.b, key...)
	if op == opPut {
		l.b = binary.AppendUvarint(l.b, uint64(len(value)))
		l.b = append(l.b, value...)
	}
	if len(l.b) > maxEntry {
		l.b, l.cut = nil, true
	}
}

var errOp = errors.New("an entry of the log has the right checksum and the wrong form")

// apply does again what an entry says.
func apply(tx *bolt.Tx, b []byte) error {
	return eachOp(b, func(op byte, t store.Table, key, value []byte) error {
		bucket := tx.Bucket([]byte(t))
		if bucket == nil {
			return errOp
		}
		if op == opDelete {
			return bucket.Delete(key)
		}
		return bucket.Put(key, value)
	})
}

// eachOp takes an entry apart.
func eachOp(b []byte, fn func(op byte, t store.Table, key, value []byte) error) error {
	for len(b) > 0 {
		if len(b) < 2 || int(b[0]) >= len(store.Tables) || b[1] > opPut {
			return errOp
		}
		table, op := store.Tables[b[0]], b[1]
		key, rest, ok := field(b[2:])
		var value []byte
		if op == opPut && ok {
			value, rest, ok = field(rest)
		}
		if !ok {
			return errOp
		}
		if err := fn(op, table, key, value); err != nil {
			return err
		}
		b = rest
	}
	return nil
}

func field(b []byte) (value, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > uint64(len(b)-k) {
		return nil, nil, false
	}
	return b[k : k+int(n)], b[k+int(n):], true
}
