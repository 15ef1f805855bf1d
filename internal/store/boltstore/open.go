package boltstore

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	bolt "go.etcd.io/bbolt"

	"github.com/nameplane/nameplane/internal/store"
)

// mapSize is how much address space is mapped at the start. When a file outgrows its mapping, bbolt maps it again: it
// waits for all Views, and new Views wait for it. Address space costs nothing, because a page counts as memory only
// when it is read. 8 GB is enough for more than thirty million record sets. With 32-bit ints, mapSize is 128 MB.
var mapSize = int(min(int64(8)<<30, math.MaxInt>>4))

// boltOptions returns the options for bbolt. docs/designs/011-plain-bbolt.md has the measurements.
//
//   - FreelistType: the map finds a run of free pages in constant time; the array searches all of it for each page.
//   - NoFreelistSync stays off. It would save one page of the eleven that one change writes, more when many pages are
//     free. But then Open must find the free pages by reading the whole file. So must every failed commit, in a
//     goroutine of bbolt where a page that the disk cannot read ends the process.
//   - NoGrowSync stays off: without the fsync after growing, a power cut can leave the file shorter than its
//     meta page says.
//   - PageSize is fixed to 4096, so that a file does not depend on the machine that created it. A commit also writes
//     whole pages: with 8192, one change took 0.92 ms instead of 0.78 ms (64 changes: 2.4 instead of 3.3).
//   - NoStatistics: nothing reads them, and they cost each View a lock.
func boltOptions() *bolt.Options {
	return &bolt.Options{
		FreelistType:    bolt.FreelistMapType,
		PageSize:        4096,
		InitialMmapSize: mapSize,
		NoStatistics:    true,
	}
}

// openFile opens, locks and checks the file before bbolt reads it. The caller holds s.mu and s.write, or the store is
// new.
func (s *Store) openFile() error {
	o := boltOptions()
	err := s.openWith(o)
	if errors.Is(err, syscall.ENOMEM) {
		// The address space of this process is limited (ulimit -v): map what the file needs now.
		o.InitialMmapSize = 0
		err = s.openWith(o)
	}
	if s.readOnly = false; errors.Is(err, syscall.EROFS) {
		o.ReadOnly = true
		if rerr := s.openWith(o); !errors.Is(rerr, os.ErrNotExist) {
			s.readOnly = rerr == nil
			return rerr
		}
	}
	return err
}

func (s *Store) openWith(o *bolt.Options) (err error) {
	var found checked
	var file *os.File
	o.OpenFile = func(name string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(name, flag, mode)
		if err != nil {
			return nil, err
		}
		// bbolt locks this same descriptor again, which changes nothing. The lock is taken here first, so that the check does
		// not read while another process writes.
		if err := lock(f, !o.ReadOnly, s.opts.LockTimeout); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if err := checkReplaced(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if err := checkLog(f.Name()); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if found, err = checkFile(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		file = f
		return f, nil
	}
	defer func() {
		// The check has read every page, so bbolt should find no damage. If it does, return an error instead of a panic.
		if p := recover(); p != nil {
			_ = file.Close()
			err = &store.DamagedError{Path: s.path, Err: fmt.Errorf("opening: %v", p)}
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bolt.Open(s.path, 0o600, o)
	if err != nil {
		return describe(err)
	}
	if found.empty && !o.ReadOnly {
		// The file itself is durable; its directory entry must be, too.
		if err := syncDir(filepath.Dir(s.path)); err != nil {
			return errors.Join(fmt.Errorf("open store %s: %w", s.path, err), db.Close())
		}
	}
	if found.noChecksums {
		if err := checkMark(db); err != nil {
			return describe(errors.Join(err, db.Close()))
		}
	}
	if !o.ReadOnly {
		removeLog(s.path)
	}
	s.db, s.file, s.noChecksums, s.wrote = db, file, found.noChecksums, false
	s.report(found)
	return nil
}

// report records damage that does not prevent the store from being opened.
func (s *Store) report(found checked) {
	if found.torn {
		s.noteDamage(&store.DamagedError{Path: s.path, Err: errors.New(tornMeta)})
	}
	if found.journal != nil {
		d := &store.DamagedError{Path: s.path, Err: fmt.Errorf("the history of zones: %w", found.journal)}
		s.noteDamage(d)
		s.blocked = fmt.Errorf("%w: %w", store.ErrUnavailable, d)
	}
}

// checkReplaced returns an error when another server replaced the file while this one waited for the lock.
func checkReplaced(f *os.File) error {
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(f.Name()); err != nil || !os.SameFile(mine, now) {
		return fmt.Errorf("another nameplane serve has just replaced %s; start again", f.Name())
	}
	return nil
}

func describe(err error) error {
	if d := (*store.DamagedError)(nil); errors.As(err, &d) {
		return d
	}
	// os and syscall errors name the path already.
	return fmt.Errorf("open store: %w", err)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // some file systems do not support it, and order directory changes themselves
	}
	return errors.Join(err, d.Close())
}
