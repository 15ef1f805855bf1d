package boltstore

import (
	"errors"
	"fmt"
	"os"

	"github.com/nameplane/nameplane/internal/store"
)

// setBack sets the file back to the checkpoint of its log, before bbolt reads it. Whether the two belong together is
// found out first: a file that is another one, such as a backup that was put in its place, is not touched.
func setBack(f *os.File, w *wal) error {
	foreign := func(err error) error {
		return fmt.Errorf("the log %s does not belong to %s (%w); if you put a backup in its place, delete the log and start "+
			"again", walPath(f.Name()), f.Name(), err)
	}
	m, err := parseMeta(w.meta)
	if err != nil {
		return foreign(err)
	}
	var entries uint64
	if err := w.entries(func([]byte) error { entries++; return nil }); err != nil {
		return err
	}
	// Less by one is what a torn write of the meta page after the checkpoint leaves; more by a few, commits that failed.
	if newest, err := readMeta(f); err == nil &&
		(newest.txid+1 < m.txid || newest.txid > m.txid+entries+maxFailed || newest.pageSize != m.pageSize) {
		return foreign(fmt.Errorf("it is at step %d and the log goes from %d to %d", newest.txid, m.txid, m.txid+entries))
	}
	if err := checkPages(f, m); err != nil {
		return foreign(err)
	}
	// The other page is blanked, which is to bbolt what a torn write leaves. If we are cut off between the two, the log
	// still says what to do.
	page := make([]byte, m.pageSize)
	if _, err := f.WriteAt(page, int64((m.txid+1)%2*m.pageSize)); err != nil {
		return err
	}
	copy(page, w.meta)
	if _, err := f.WriteAt(page, int64(m.txid%2*m.pageSize)); err != nil {
		return err
	}
	return f.Sync()
}

// maxFailed is how many commits may have failed since a checkpoint and still have left their meta page.
const maxFailed = 16

// overlay is what the log's entries say; nil when there are none.
func (w *wal) overlay() (*overlay, error) {
	m, err := parseMeta(w.meta)
	if err != nil {
		return nil, err
	}
	over := &overlay{base: int(m.txid)}
	err = w.entries(func(payload []byte) error {
		ops := 0
		if err := eachOp(payload, func(byte, store.Table, []byte, []byte) error { ops++; return nil }); err != nil {
			return err
		}
		over = over.with(&opLog{b: payload, ops: ops})
		return nil
	})
	if err != nil || over.ops == 0 {
		return nil, err
	}
	return over, nil
}

// recoverWAL finds the log of a file that was just locked, and sets the file back when it must be. It returns the log
// when there is something to replay.
func recoverWAL(f *os.File, readOnly bool) (*wal, error) {
	w, err := openWAL(f.Name(), readOnly)
	if err != nil || w == nil {
		return nil, err
	}
	if !w.dirty {
		return nil, w.f.Close()
	}
	if readOnly {
		return nil, errors.Join(fmt.Errorf("open store %s: it was not closed in order, and its log cannot be applied on a "+
			"read-only file system", f.Name()), w.f.Close())
	}
	err = w.entries(func([]byte) error { return nil }) // before anything is changed
	if broken := (*brokenEntry)(nil); errors.As(err, &broken) {
		err = lostLog(f.Name(), broken.Error())
	}
	if info, serr := f.Stat(); err == nil && serr == nil && info.Size() == 0 {
		err = fmt.Errorf("it is empty, or was deleted, and its log %s has changes of it; put the file back", walPath(f.Name()))
	}
	if err == nil {
		err = setBack(f, w)
	}
	if err != nil {
		return nil, errors.Join(&store.DamagedError{Path: f.Name(), Err: err}, w.f.Close())
	}
	return w, nil
}
