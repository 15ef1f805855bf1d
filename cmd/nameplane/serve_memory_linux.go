package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// freeProgram lets go of the pages of the program itself, of which a server uses less than half after its start: those that
// are used come back from the system's cache when they are next touched. Only what is mapped from the file and cannot be
// written is let go, so nothing can be lost.
func freeProgram() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for _, r := range programPages(maps, self) {
		unix.Syscall(unix.SYS_MADVISE, r.start, r.end-r.start, unix.MADV_DONTNEED) // a wish: where it fails, pages stay
	}
}

// pages is a range of memory.
type pages struct{ start, end uintptr }

// programPages are the ranges of maps, in the form of proc_pid_maps(5), that are mapped from the file self for reading only.
func programPages(maps []byte, self string) (out []pages) {
	lines := bufio.NewScanner(bytes.NewReader(maps))
	for lines.Scan() {
		var r pages
		var mode, offset, device, inode, path string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %s %s %s %s", &r.start, &r.end, &mode, &offset, &device, &inode, &path); n < 7 {
			continue
		}
		if path == self && (mode == "r-xp" || mode == "r--p") {
			out = append(out, r)
		}
	}
	return out
}
