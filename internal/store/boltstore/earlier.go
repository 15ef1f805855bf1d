package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// Earlier builds kept the newest changes in a log beside the file, FILE-wal. After an orderly end the file has all of
// them, and the log is of no use. After a crash it has not, and only such a build can bring them into the file: Open
// then refuses the store, and changes nothing.
//
// Two places say that a log is in use. The log begins with two header slots of 4096 bytes, written in turn:
//
//	0    magic "npwal\x00\x00\x01"
//	8    sequence number, little endian, 8 bytes; the whole header with the larger number counts
//	16   1: in use; 0: the file has everything
//	17   random number 16 bytes, copy of a meta page 80 bytes
//	113  CRC-32C of bytes 0 to 112, little endian
//
// The file has a mark, so that a lost or damaged log is noticed too: the sequence number of the bucket Meta is the
// log's id, and in its upper half 1 + the upper half of the transaction number. In a backup of such a build the
// transaction number is larger by 2^32, so the mark does not count there.
const (
	logMagic = "npwal\x00\x00\x01"
	logSlot  = 4096
	logHead  = 113
)

func logPath(path string) string { return path + "-wal" }

// checkLog refuses the store at path when the log beside it is in use.
func checkLog(path string) error {
	f, err := os.Open(logPath(path))
	if err != nil {
		return nil // there is none, or nobody can read it: then the mark tells
	}
	defer f.Close()
	if _, inUse := logState(f); inUse {
		return logInUse(path)
	}
	return nil
}

// logState reads the newest header of a log. A log without one was never used, or is no log.
func logState(f *os.File) (found, inUse bool) {
	var newest uint64
	head := make([]byte, logHead+4)
	for slot := range int64(2) {
		if _, err := f.ReadAt(head, slot*logSlot); err != nil || string(head[:8]) != logMagic {
			continue
		}
		sum := crc32.Checksum(head[:logHead], crc32.MakeTable(crc32.Castagnoli))
		seq := binary.LittleEndian.Uint64(head[8:])
		if sum == binary.LittleEndian.Uint32(head[logHead:]) && seq > newest {
			newest, found, inUse = seq, true, head[16] != 0
		}
	}
	return found, inUse
}

// checkMark refuses a store whose file says that a log is in use.
func checkMark(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(store.Meta))
		if b == nil || !hasMark(b.Sequence(), uint64(tx.ID())) {
			return nil
		}
		return logInUse(db.Path())
	})
}

// hasMark reports whether the sequence number of the bucket Meta says that a log is in use.
func hasMark(sequence, txid uint64) bool { return sequence>>32 == txid>>32+1 }

func logInUse(path string) error {
	return fmt.Errorf("an earlier build of nameplane did not stop in order and left the newest changes of %s in %s: "+
		"start and stop that build once, then start this one", path, logPath(path))
}

// removeLog deletes a log that is not in use. One that cannot be deleted does no harm.
func removeLog(path string) {
	f, err := os.Open(logPath(path))
	if err != nil {
		return
	}
	defer f.Close()
	if found, inUse := logState(f); found && !inUse {
		_ = os.Remove(logPath(path))
	}
}
