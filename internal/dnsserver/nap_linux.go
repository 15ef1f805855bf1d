package dnsserver

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A socket that has been emptied while queries come in crowds is left alone for a moment before the thread sleeps on it. The next crowd
// then finds nobody to wake, which costs the sender of a query, or the kernel that brings it, as much as the query itself; and it
// is answered together.
const (
	crowd   = 4                     // queries in the batch before
	napTime = 40 * time.Microsecond // a nap, and the most that it delays a reply
	// Go does not hear of anything else during a nap, and looks at the network when nobody has anything to do. So there is a
	// proper sleep this often.
	napsTime = time.Millisecond
)

// naps is when a socket may nap.
type naps struct {
	slept time.Time // when it last slept properly
}

// take takes a nap, if it is a time for one.
func (n *naps) take(received int) bool {
	if received < crowd {
		return false
	}
	if now := time.Now(); now.Sub(n.slept) > napsTime {
		n.slept = now
		return false
	}
	nap()
	return true
}

// nap is the raw form of nanosleep(2): to the scheduler it is work. The thread's timers may usually be 50 µs late, which is more than
// the nap.
func nap() {
	length := unix.NsecToTimespec(int64(napTime))
	_, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&length)), 0, 0)
}
