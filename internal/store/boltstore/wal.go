package boltstore

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/nameplane/nameplane/internal/store"
)

// wal is the log beside the file: FILE-wal. What an Update wrote is appended to it and synced, once; only then are the
// pages written to the file, and those are left to the system to bring to the disk. bbolt alone needs two syncs for
// each commit, and one of them must wait for as many scattered pages as there were changes.
//
// The log begins with a checkpoint: the meta page of a state of which every page is on the disk. After a crash the
// file is set back to that state, whatever became of the pages since, and the log is applied to it. While the log is in
// use a read transaction of the checkpoint is held, which keeps bbolt from using its pages again (checkpoint.go).
//
// Layout: two headers of 4096 octets, used in turn, so that one of them is always whole; then entries. An entry counts
// when its checksum, which covers the header's nonce, is right; the first that does not is the end. The nonce changes with
// every header, so entries of an earlier round, and octets of a record that look like an entry, never count. A crash leaves
// nothing else: the file keeps its length, which stands behind each header, and there is no entry behind the end.
type wal struct {
	f     *os.File
	disk  syncer
	id    uint32 // which log this is, as the file says it; 0: one of an older version, where the file says nothing
	seq   uint64 // of the newest header
	nonce [16]byte
	dirty bool   // the file must be set back to meta and the entries applied
	meta  []byte // meta page of the checkpoint
	size  int64  // of the file
	off   int64  // where the next entry goes

	torn   bool // begin failed: which header a crash leaves is open, so nothing may be appended to either
	failed bool // cancel failed, and must succeed before anything is appended
}

const (
	walMagic     = "npwal\x00\x00\x01"
	walSlot      = 4096
	walEntries   = 2 * walSlot
	walMetaSize  = headerSize + metaSize
	walHeadSize  = 8 + 8 + 1 + 16 + walMetaSize + 4
	walSizeEnd   = walHeadSize + 8 + 4 // the file's length and a checksum; logs of older versions have zeros
	walIDEnd     = walSizeEnd + 4 + 4  // the log's id and a checksum; as above
	walEntryHead = 8                   // length 4, checksum 4

	// defaultWALSize is allocated at once, so that an append changes no metadata of the file system and one fdatasync is
	// cheap. It is also how much is applied again after a crash, at most.
	defaultWALSize = 32 << 20
	// maxEntry is the longest entry; what is longer is committed by bbolt's own two syncs, which are then a small part.
	maxEntry = 4 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func walPath(path string) string { return path + "-wal" }

// openWAL opens the log of the file at path; nil when there is none, or none that was ever used.
func openWAL(path string, readOnly bool) (*wal, error) {
	flag := os.O_RDWR
	if readOnly {
		flag = os.O_RDONLY
	}
	f, err := os.OpenFile(walPath(path), flag, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w := &wal{f: f}
	for slot := range int64(2) { // which learn the length that it had
		if err := w.readHeader(slot); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if w.seq == 0 {
		return nil, f.Close() // a crash while it was made, or checkMark finds out
	}
	info, err := f.Stat()
	if err == nil && info.Size() < w.size && !w.dirty && w.id != 0 {
		return nil, f.Close() // cut while it was in use, and ended in order; if it was not, checkMark finds out
	}
	if err == nil && info.Size() < w.size {
		err = &store.DamagedError{Path: path, Err: lostLog(path, fmt.Sprintf("has only %d octets of %d", info.Size(), w.size))}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	w.off, w.size = walEntries, info.Size()
	return w, nil
}

// readHeader takes over the header in a slot when it is whole and newer.
func (w *wal) readHeader(slot int64) error {
	b := make([]byte, walIDEnd)
	if _, err := w.f.ReadAt(b, slot*walSlot); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	body, sum := b[:walHeadSize-4], binary.LittleEndian.Uint32(b[walHeadSize-4:])
	size, sizeSum := binary.LittleEndian.Uint64(b[walHeadSize:]), binary.LittleEndian.Uint32(b[walSizeEnd-4:])
	if string(b[:8]) != walMagic || crc32.Checksum(body, castagnoli) != sum {
		return nil
	}
	if seq := binary.LittleEndian.Uint64(b[8:]); seq > w.seq {
		w.seq, w.dirty = seq, b[16] != 0
		copy(w.nonce[:], b[17:])
		w.meta = b[33 : 33+walMetaSize]
		if w.id = 0; crc32.Checksum(b[:walIDEnd-4], castagnoli) == binary.LittleEndian.Uint32(b[walIDEnd-4:]) {
			w.id = binary.LittleEndian.Uint32(b[walSizeEnd:])
		}
	}
	if crc32.Checksum(b[:walSizeEnd-4], castagnoli) == sizeSum {
		w.size = max(w.size, int64(size))
	}
	return nil
}

// createWAL makes the log of the file at path, of the given size, all of it written: blocks that the file system has yet
// to find would cost each sync a second write. It has a header, which says that it holds nothing.
func createWAL(path string, size int64) (*wal, error) {
	f, err := os.OpenFile(walPath(path), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &wal{f: f, off: walEntries, size: size}
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < size && err == nil; at += int64(len(zeros)) {
		_, err = f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at)
	}
	if err == nil {
		err = errors.Join(f.Sync(), syncDir(filepath.Dir(path)))
	}
	if err == nil {
		err = w.begin(nil)
	}
	if err != nil {
		w.disk.close()
		return nil, errors.Join(fmt.Errorf("make the log: %w", err), f.Close(), os.Remove(walPath(path)))
	}
	return w, nil
}

// begin starts the log anew. With a meta page it is in use from now on, from the state of that page; without, the file
// is good as it is.
func (w *wal) begin(meta []byte) error {
	var nonce [16]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return err
	}
	if err := w.identify(); err != nil {
		return err
	}
	b := make([]byte, walSlot)
	copy(b, walMagic)
	binary.LittleEndian.PutUint64(b[8:], w.seq+1)
	if meta != nil {
		b[16] = 1
	}
	copy(b[17:], nonce[:])
	copy(b[33:33+walMetaSize], meta)
	sum := crc32.Checksum(b[:walHeadSize-4], castagnoli)
	binary.LittleEndian.PutUint32(b[walHeadSize-4:], sum)
	binary.LittleEndian.PutUint64(b[walHeadSize:], uint64(w.size))
	binary.LittleEndian.PutUint32(b[walSizeEnd-4:], crc32.Checksum(b[:walSizeEnd-4], castagnoli))
	binary.LittleEndian.PutUint32(b[walSizeEnd:], w.id)
	binary.LittleEndian.PutUint32(b[walIDEnd-4:], crc32.Checksum(b[:walIDEnd-4], castagnoli))
	w.torn = true
	if _, err := w.f.WriteAt(b, int64(w.seq+1)%2*walSlot); err != nil {
		return err
	}
	if err := w.disk.datasync(w.f, false); err != nil {
		return err
	}
	w.torn, w.failed = false, false
	w.seq, w.nonce, w.dirty, w.meta, w.off = w.seq+1, nonce, meta != nil, meta, walEntries
	return nil
}

// close lets go of the log, if there is one.
func (w *wal) close() error {
	if w == nil {
		return nil
	}
	w.disk.close()
	return w.f.Close()
}

func (w *wal) checksum(payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(w.nonce[:], castagnoli), castagnoli, payload)
}

// append makes an entry durable, with a thread that waits for it when hold says so. It counts until cancel; keep moves on
// behind it.
func (w *wal) append(payload []byte, hold bool) error {
	b := make([]byte, walEntryHead, walEntryHead+len(payload)+walEntryHead)
	binary.LittleEndian.PutUint32(b, uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[4:], w.checksum(payload))
	b = append(b, payload...)
	b = append(b, make([]byte, walEntryHead)...) // an end, in case something longer was here and cancelled
	if _, err := w.f.WriteAt(b, w.off); err != nil {
		return err
	}
	return w.disk.datasync(w.f, hold)
}

func (w *wal) keep(payload []byte) { w.off += walEntryHead + int64(len(payload)) }

// cancel makes sure that what append may have written does not count.
func (w *wal) cancel() error {
	w.failed = true
	if _, err := w.f.WriteAt(make([]byte, walEntryHead), w.off); err != nil {
		return err
	}
	if err := w.disk.datasync(w.f, false); err != nil {
		return err
	}
	w.failed = false
	return nil
}

// entries reads the entries in order and leaves off behind the last. An entry that is not whole is the end, unless there is
// a whole one behind it: an entry is written when the one before is on the disk, so then something has damaged it.
func (w *wal) entries(fn func(payload []byte) error) error {
	for w.off = walEntries; ; {
		payload, whole, err := w.entry(w.off)
		switch {
		case err != nil || payload == nil:
			return err
		case !whole:
			_, whole, err = w.entry(w.off + walEntryHead + int64(len(payload)))
			if whole {
				err = &brokenEntry{w.off}
			}
			return err
		}
		if err := fn(payload); err != nil {
			return err
		}
		w.keep(payload)
	}
}

// brokenEntry says that something has damaged an entry, and where it is.
type brokenEntry struct{ at int64 }

func (e *brokenEntry) Error() string {
	return fmt.Sprintf("is damaged at octet %d, and there are changes behind it", e.at)
}

// entry reads the entry at an octet, and tells whether it is whole; nil when there cannot be one.
func (w *wal) entry(at int64) (payload []byte, whole bool, err error) {
	if at+walEntryHead > w.size {
		return nil, false, nil
	}
	head := make([]byte, walEntryHead)
	if _, err := w.f.ReadAt(head, at); err != nil {
		return nil, false, err
	}
	n := int64(binary.LittleEndian.Uint32(head))
	if n == 0 || n > maxEntry || at+walEntryHead+n > w.size {
		return nil, false, nil
	}
	payload = make([]byte, n)
	if _, err := w.f.ReadAt(payload, at+walEntryHead); err != nil {
		return nil, false, err
	}
	return payload, w.checksum(payload) == binary.LittleEndian.Uint32(head[4:]), nil
}

// room reports whether the longest entry fits.
func (w *wal) room(size int64) bool { return w.roomBehind(-walEntryHead, size) }

// roomBehind is room behind an entry of n octets that is not kept yet.
func (w *wal) roomBehind(n int, size int64) bool {
	return w.off+walEntryHead+int64(n)+2*walEntryHead+maxEntry <= size
}
