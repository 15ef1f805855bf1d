package boltstore

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syncer brings files to the disk, one at a time, and can wait for it as for a socket: the kernel does the work in a thread of
// its own and tells a descriptor that the runtime watches. A thread of ours that waits in fdatasync keeps its processor
// until the runtime notices, and for that the runtime wakes up 50,000 times a second: with one processor, 1,000 changes a
// second cost queries twice as much. It is sooner back, though, by what it takes to wake the kernel's thread. Direct writes that are durable by themselves (O_DIRECT, RWF_DSYNC) were tried: they
// leave the pages of the store's file to be synced all the same, and gained nothing over this.
//
// The zero syncer works. Where the kernel has no asynchronous fdatasync (before 4.18), or whoever fenced us in does not
// allow it, a thread waits.
type syncer struct {
	ring  uintptr  // the kernel's context
	event *os.File // eventfd, of fd; never event.Fd, which would let reads of it block a thread
	fd    int
	plain bool // a thread waits
}

// control and completion are struct iocb and struct io_event of linux/aio_abi.h. The key, which is of no use here, is where
// it is on every processor; its neighbour, which changes place with it, stays 0 too.
type control struct {
	_            [2]uint64
	opcode       uint16
	_            int16
	fd           uint32
	_            [4]uint64
	flags, event uint32
}

type completion struct {
	_, _   uint64
	result int64
	_      int64
}

const (
	controlDatasync = 3 // IOCB_CMD_FDSYNC
	controlEvent    = 1 // IOCB_FLAG_RESFD
)

// datasync brings the octets of a file to the disk, and of what describes it only what reading them needs. A thread of ours
// waits when hold says so.
func (s *syncer) datasync(f *os.File, hold bool) error {
	if !hold && s.ring == 0 && !s.plain {
		s.plain = !s.open()
	}
	if !hold && !s.plain {
		if s.submit(f) {
			return s.wait()
		}
		s.close()
		s.plain = true
	}
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}

func (s *syncer) open() bool {
	var err error
	if s.fd, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return false
	}
	s.event = os.NewFile(uintptr(s.fd), "eventfd")
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&s.ring)), 0); errno != 0 {
		s.close()
		return false
	}
	return true
}

// holdsThread reports whether there is no other way, which is known after the first sync.
func (s *syncer) holdsThread() bool { return s.ring == 0 }

// close gives back what the kernel holds. Without it nothing is lost but that, until the process ends.
func (s *syncer) close() {
	if s.ring != 0 {
		_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, s.ring, 0, 0)
	}
	if s.event != nil {
		_ = s.event.Close()
	}
	s.ring, s.event = 0, nil
}

// submit begins to sync a file; false when the kernel does not take it, whatever the reason.
func (s *syncer) submit(f *os.File) bool {
	c := &control{opcode: controlDatasync, fd: uint32(f.Fd()), flags: controlEvent, event: uint32(s.fd)}
	for {
		n, _, errno := unix.Syscall(unix.SYS_IO_SUBMIT, s.ring, 1, uintptr(unsafe.Pointer(&c)))
		if errno != unix.EINTR {
			return errno == 0 && n == 1
		}
	}
}

// wait returns how it went. That the event can be read says that it is over; if it cannot, which has no reason to be, a
// thread waits: the answer must be the right one.
func (s *syncer) wait() error {
	var count [8]byte
	_, _ = s.event.Read(count[:])
	for {
		var c completion
		n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, s.ring, 1, 1, uintptr(unsafe.Pointer(&c)), 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return errno
		case n == 1 && c.result == 0:
			return nil
		case n == 1:
			return unix.Errno(-c.result)
		}
	}
}
