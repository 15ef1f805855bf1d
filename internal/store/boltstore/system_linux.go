package boltstore

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// readAhead asks the kernel to read the first size bytes of the file. The check reads them in the order of keys, which
// is random access.
func readAhead(f *os.File, size int64) {
	_ = unix.Fadvise(int(f.Fd()), 0, size, unix.FADV_WILLNEED) // advice: a failure changes only the speed
}

// dropMapped removes the pages of a mapped file from the memory of this process.
func dropMapped(start, size uintptr) {
	// This is the raw system call, because start is not a Go pointer and must not become one.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, size, unix.MADV_DONTNEED)
}

// dropCached removes the pages of a file from the page cache, so that the next read comes from the disk. Dirty pages
// stay.
func dropCached(f *os.File) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice: when it fails, a scrub reads cached pages
}

// holder names the process that holds the lock of f.
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
