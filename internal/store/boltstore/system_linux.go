package boltstore

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readAhead asks for the first size bytes of the file at once: the check reads them in the order of the keys.
func readAhead(f *os.File, size int64) {
	_ = unix.Fadvise(int(f.Fd()), 0, size, unix.FADV_WILLNEED) // advice: nothing is lost when it is not taken
}

// dropMapped takes the pages of a mapped file out of this process.
func dropMapped(start, size uintptr) {
	// The raw call, because start is no Go pointer and must not become one.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_DONTNEED)
}

// dropCached takes the pages of a file out of the page cache, so that the next read is of the disk. Pages that wait to be
// written stay.
func dropCached(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice: a scrub then reads what is cached
}

// holder says which process has the lock of f.
func holder(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return "unknown process"
	}
	st := info.Sys().(*syscall.Stat_t)
	id := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return "unknown process"
	}
	defer locks.Close()
	// 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1311 0 EOF
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		if w := strings.Fields(lines.Text()); len(w) > 5 && w[1] == "FLOCK" && w[5] == id {
			return "process " + w[4]
		}
	}
	return "unknown process"
}
