//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package boltstore

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the lock that bbolt takes, to be able to name the process that holds it.
func lock(f *os.File, exclusive bool, timeout time.Duration) error {
	how := unix.LOCK_SH | unix.LOCK_NB
	if exclusive {
		how = unix.LOCK_EX | unix.LOCK_NB
	}
	for end := time.Now().Add(timeout); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return &os.PathError{Op: "lock", Path: f.Name(), Err: err}
		case time.Now().After(end):
			return fmt.Errorf("another nameplane serve is using %s (%s); stop it, or start with another --data directory",
				f.Name(), holder(f))
		}
	}
}
