package boltstore

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// The mark says, in the file, that its log is in use and which log that is: without it, a log that somebody has emptied or
// deleted looks like one that was never made, and what was acknowledged would be gone without a word. It is on the disk
// before the log is relied on, and gone after a store is closed in order. The steps, each synced before the next:
//
//	a header is in the log, with its id     createWAL
//	the file has the mark                   mark
//	a header with the checkpoint; entries   begin
//	everything is in the file               flush
//	a header that needs nothing             begin
//	the mark is gone                        mark
//
// So wherever a crash comes, there is a header while there is a mark.
//
// It is the sequence number of the table Meta, which nobody else uses and older versions leave alone: the log's id, and above it
// which 2^32 of transactions it was set in. A backup is in another (backupStep), and so has no mark.

// markTable is the table whose sequence number is the mark.
const markTable = store.Meta

// discardWord is what an operator writes into the log to go on without what was in it.
const discardWord = "discard"

// identify gives a log that has none an id that no other is likely to have.
func (w *wal) identify() error {
	if w.id != 0 {
		return nil
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return err
	}
	w.id = binary.LittleEndian.Uint32(b[:]) | 1
	return nil
}

// markOf returns the id of the log that is in use, as tx sees it; 0: none is.
func markOf(tx *bolt.Tx) uint32 {
	b := tx.Bucket([]byte(markTable))
	if b == nil || b.Sequence()>>32 != era(tx) {
		return 0
	}
	return uint32(b.Sequence())
}

func era(tx *bolt.Tx) uint64 {
	id := tx.ID()
	if tx.Writable() {
		id-- // the one that it stands on
	}
	return uint64(id)>>32 + 1
}

// mark has the file say that the log with an id is in use; 0: that none is. write is held, no transaction is open.
func (s *Store) mark(id uint32) error {
	tx, err := s.begin(true)
	if err != nil {
		return err
	}
	if changed, err := s.setMark(tx, id); err != nil || !changed {
		return errors.Join(err, tx.Rollback())
	}
	return s.saveAlone(tx)
}

func (s *Store) setMark(tx *bolt.Tx, id uint32) (changed bool, err error) {
	defer s.guardAll(debug.SetPanicOnFault(true), &err)
	b := tx.Bucket([]byte(markTable))
	if b == nil || markOf(tx) == id {
		return false, nil
	}
	var mark uint64
	if id != 0 {
		mark = era(tx)<<32 | uint64(id)
	}
	return true, b.SetSequence(mark)
}

// checkMark refuses a file whose mark tells of a log that is not there, unless the operator wants to do without.
func checkMark(db *bolt.DB) error {
	path := db.Path()
	var id uint32
	err := db.View(func(tx *bolt.Tx) error { id = markOf(tx); return nil })
	if err != nil || id == 0 {
		return err
	}
	w, err := openWAL(path, true)
	if err != nil {
		return err
	}
	why := "is the log of another store"
	if w == nil {
		why, err = noLog(path)
	} else if err = w.close(); w.id == id || w.id == 0 {
		why = ""
	}
	if err != nil || why == "" {
		return err
	}
	return &store.DamagedError{Path: path, Err: lostLog(path, why)}
}

// lostLog says what is wrong with a log, and the ways out.
func lostLog(path, why string) error {
	return fmt.Errorf("its log %[1]s %[2]s, and had changes that were acknowledged and may be nowhere else; put the log back, or, to go on "+
		"without them, write the word %[3]s into it (echo %[3]s > %[1]s)", walPath(path), why, discardWord)
}

// noLog says what is in the place of a log; nothing when that is the operator's word.
func noLog(path string) (why string, err error) {
	f, err := os.Open(walPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return "is missing", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 64))
	switch {
	case err != nil:
		return "", err
	case len(head) == 0:
		return "is empty", nil
	case string(bytes.TrimSpace(head)) == discardWord:
		return "", nil
	}
	return "has no header", nil
}
