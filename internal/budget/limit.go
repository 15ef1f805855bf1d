package budget

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Limit returns the memory limit of the process, in bytes: GOMEMLIMIT, or else nine tenths of the memory of the control
// group or of the machine. In the second case, it also sets the limit of the garbage collector. The remaining tenth is
// for memory that Go does not count: pages of the store's file that are being written, and memory of the kernel.
func Limit() int64 {
	if n := debug.SetMemoryLimit(-1); n != math.MaxInt64 {
		return n
	}
	n := groupLimit(os.DirFS("/"))
	if n == 0 {
		return 0
	}
	n -= n / 10
	debug.SetMemoryLimit(n)
	return n
}

// groupLimit returns the smallest limit of the machine and of the control groups of the process, or 0 when none is
// known. Version 2 has one tree of groups, version 1 has one for memory. The path of a group is relative to its
// namespace, and a container may see the group under a shorter path. So the groups above it count as well.
func groupLimit(root fs.FS) int64 {
	limit := machine(root)
	groups, _ := fs.ReadFile(root, "proc/self/cgroup") // missing on other systems
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		switch {
		case parts[0] == "0" && parts[1] == "":
			dir, file = "sys/fs/cgroup", "memory.max"
		case parts[1] != "memory":
			continue
		}
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			text, _ := fs.ReadFile(root, path.Join(dir, at, file))
			limit = smaller(limit, string(text))
			if at == "/" {
				break
			}
		}
	}
	return limit
}

// machine returns the memory of the machine.
func machine(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/meminfo")
	_, rest, _ := strings.Cut(string(text), "MemTotal:")
	if kb := strings.Fields(rest); len(kb) > 0 {
		if n, err := strconv.ParseInt(kb[0], 10, 64); err == nil {
			return n << 10
		}
	}
	return 0
}

// smaller returns the smaller of a limit, where 0 is none, and a limit as text, where anything except a positive number
// is none.
func smaller(limit int64, text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || limit > 0 && limit < n {
		return limit
	}
	return n
}
