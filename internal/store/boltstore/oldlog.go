package boltstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// Older versions kept the newest changes in a log beside the file, FILE-wal. After a clean shutdown the file has all
// changes, and the log is not needed. After a crash it has not, and only such a version can write them to the file:
// Open then refuses the store and changes nothing.
//
// Two marks show that a log is in use. The first is in the log. It begins with two header slots of 4096 bytes, which
// are written alternately:
//
//	0    magic "npwal\x00\x00\x01"
//	8    sequence number, little endian, 8 bytes; the intact header with the larger number is valid
//	16   1: in use; 0: the file has all changes
//	17   random number 16 bytes, copy of a meta page 80 bytes
//	113  CRC-32C of bytes 0 to 112, little endian
//
// The second mark is in the file, so that a lost or damaged log is noticed too. It is the sequence number of the bucket
// Meta: the lower half is the ID of the log, the upper half is 1 + the upper half of the transaction number. In a
// backup of such a version the transaction number is larger by 2^32, so the mark is not valid there.
const (
	logMagic = "npwal\x00\x00\x01"
	logSlot  = 4096
	logHead  = 113
)

func logPath(path string) string { return path + "-wal" }

// checkLog returns an error when the log beside the store at path is in use.
func checkLog(path string) error {
	f, err := os.Open(logPath(path))
	if err != nil {
		return nil // no log, or not readable: then the mark in the file decides
	}
	defer f.Close()
	if _, inUse := logState(f); inUse {
		return logInUse(path)
	}
	return nil
}

// logState reads the newest header of a log. A file without one is an unused log, or not a log.
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

// checkMark returns an error when the mark in the file shows that a log is in use.
func checkMark(db *bolt.DB) error {
	return db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(store.Meta))
		if b == nil || !hasMark(b.Sequence(), uint64(tx.ID())) {
			return nil
		}
		return logInUse(db.Path())
	})
}

// hasMark reports whether the sequence number of the bucket Meta is the mark of a log in use.
func hasMark(sequence, txid uint64) bool { return sequence>>32 == txid>>32+1 }

func logInUse(path string) error {
	return fmt.Errorf("an older version of nameplane did not shut down cleanly and left the newest changes of %s in %s: "+
		"start and stop that version once, then start this one", path, logPath(path))
}

// removeLog deletes a log that is not in use. It ignores errors, because such a log does no harm.
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
