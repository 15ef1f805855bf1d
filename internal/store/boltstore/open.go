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

// mapSize is how much address space is mapped from the start. When a file outgrows its mapping, bbolt maps it again: it
// waits for every View, and new Views wait for it. Address space costs nothing (a page counts as memory when it is
// read); 8 GB is more than thirty million record sets. Where an int has 32 bits it is 128 MB.
var mapSize = int(min(int64(8)<<30, math.MaxInt>>4))

// boltOptions are the choices. docs/designs/011-plain-bbolt.md has the figures.
//
//   - FreelistType: the map finds a run of free pages in constant time; the array searches all of it per page.
//   - NoFreelistSync stays off. It saves one page of the eleven that one change writes, more when many pages are free.
//     But Open must then find the free pages in the whole file, and so must every failed commit, on a goroutine of
//     bbolt's where a page that the disk cannot read ends the process.
//   - NoGrowSync stays off: without the fsync after growing, a power cut can leave the file shorter than its
//     meta page says.
//   - PageSize is fixed to 4096, so that a file does not depend on the machine that made it, and because a commit
//     writes whole pages: with 8192 one change took 0.92 ms and not 0.78 ms (64 changes: 2.4 and not 3.3).
//   - NoStatistics: nobody reads them, and they cost each View a lock.
func boltOptions() *bolt.Options {
	return &bolt.Options{
		FreelistType:    bolt.FreelistMapType,
		PageSize:        4096,
		InitialMmapSize: mapSize,
		NoStatistics:    true,
	}
}

// openFile opens, locks and checks the file before bbolt reads it. The caller holds mu and write, or the store is new.
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
		// bbolt locks this same descriptor again, which changes nothing. Locking here first keeps the check from
		// reading what another process writes.
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
		// The check has read every page, so bbolt should find nothing wrong; if it does, that is not worth a crash.
		if p := recover(); p != nil {
			_ = file.Close()
			err = &store.DamagedError{Path: s.path, Err: fmt.Errorf("opening: %v", p)}
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	db, err := bolt.Open(s.path, 0o600, o)
	if err != nil {
		return describe(s.path, err)
	}
	if found.empty && !o.ReadOnly {
		// The file itself is on the disk; its name must be, too.
		if err := syncDir(filepath.Dir(s.path)); err != nil {
			return errors.Join(fmt.Errorf("open store %s: %w", s.path, err), db.Close())
		}
	}
	if found.plain {
		if err := checkMark(db); err != nil {
			return describe(s.path, errors.Join(err, db.Close()))
		}
	}
	if !o.ReadOnly {
		removeLog(s.path)
	}
	s.db, s.file, s.plain, s.wrote = db, file, found.plain, false
	s.report(found)
	return nil
}

// report notes what the check has found that does not keep the store from being opened.
func (s *Store) report(found checked) {
	if found.torn {
		s.noteDamage(&store.DamagedError{Path: s.path, Err: errors.New(tornMeta)})
	}
	if found.history != nil {
		d := &store.DamagedError{Path: s.path, Err: fmt.Errorf("the history of zones: %w", found.history)}
		s.noteDamage(d)
		s.stuck = fmt.Errorf("%w: %w", store.ErrUnavailable, d)
	}
}

// checkReplaced refuses a file that another server has replaced while this one waited for its lock.
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

func describe(path string, err error) error {
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
		err = nil // some file systems cannot, and keep names in order by themselves
	}
	return errors.Join(err, d.Close())
}
