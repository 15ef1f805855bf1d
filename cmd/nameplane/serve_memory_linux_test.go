package main

import (
	"fmt"
	"os"
	"slices"
	"testing"
)

func TestProgramPages(t *testing.T) {
	const maps = `00400000-01000000 r-xp 00000000 fe:00 1234 /opt/nameplane
01000000-01800000 r--p 00c00000 fe:00 1234 /opt/nameplane
01800000-01880000 rw-p 01400000 fe:00 1234 /opt/nameplane
c000000000-c000400000 rw-p 00000000 00:00 0
7f0000000000-7f0000001000 r--p 00000000 fe:00 99 /opt/nameplane.so
7f0000002000-7f0000003000 r-xp 00000000 00:00 0 [vdso]
7f0000004000-7f0000005000 r--s 00000000 fe:00 77 /data/store.db
`
	want := []pages{{0x400000, 0x1000000}, {0x1000000, 0x1800000}}
	if got := programPages([]byte(maps), "/opt/nameplane"); !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// A program goes on after its pages are gone, and has fewer of them for a while.
func TestFreeProgram(t *testing.T) {
	resident := func() int {
		status, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			t.Fatal(err)
		}
		var size, resident, shared int
		if _, err := fmt.Sscan(string(status), &size, &resident, &shared); err != nil {
			t.Fatal(err)
		}
		return shared
	}
	before := resident()
	freeProgram()
	if after := resident(); after >= before {
		t.Errorf("%d pages of files before, %d after", before, after)
	}
}
