// Package hostile attacks the program like a tenant, a network attacker or a fault would, and checks that other tenants
// are not affected. Start with TestMemory in memory_test.go, the largest attack.
package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// limits are the limits of a control group; 0 means no limit.
type limits struct{ memory, tasks int64 }

// find returns the number that a pattern matches in a file.
func find(t *testing.T, file, pattern string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(readFile(t, file))
	if m == nil {
		t.Fatalf("%s has no %s", file, pattern)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// group is a control group of version 1 or 2. Version 1 has one folder for each controller.
type group struct {
	dirs          []string
	events, usage string // paths of files
}

// newGroup creates a control group with limits. It fails the test when that is not possible: a skipped test protects
// nobody.
func newGroup(t *testing.T, l limits) group {
	t.Helper()
	name := fmt.Sprintf("nameplane-hostile-%d", os.Getpid())
	var g group
	write := map[string]int64{}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		dir := filepath.Join("/sys/fs/cgroup", name)
		// Without these controllers, the group has no limits. A system that manages its groups has enabled them.
		_ = os.WriteFile("/sys/fs/cgroup/cgroup.subtree_control", []byte("+memory +pids"), 0)
		g = group{[]string{dir}, filepath.Join(dir, "memory.events"), filepath.Join(dir, "memory.peak")}
		write[filepath.Join(dir, "memory.max")], write[filepath.Join(dir, "pids.max")] = l.memory, l.tasks
	} else {
		memory, pids := filepath.Join("/sys/fs/cgroup/memory", name), filepath.Join("/sys/fs/cgroup/pids", name)
		g = group{[]string{memory, pids}, filepath.Join(memory, "memory.oom_control"),
			filepath.Join(memory, "memory.max_usage_in_bytes")}
		write[filepath.Join(memory, "memory.limit_in_bytes")], write[filepath.Join(pids, "pids.max")] = l.memory, l.tasks
	}
	for _, dir := range g.dirs {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatalf("this test starts the server under the limits that it is shipped with, and no control group can be made "+
				"here (run it as root, with /sys/fs/cgroup writable): %v", err)
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
	}
	for file, n := range write {
		if n == 0 {
			continue
		}
		if err := os.WriteFile(file, []byte(strconv.FormatInt(n, 10)), 0); err != nil {
			t.Fatalf("the limits of a control group cannot be set here: %v", err)
		}
	}
	return g
}

// runner returns a command that enters the group and executes the command after it.
func (g group) runner() []string {
	script := ""
	for _, dir := range g.dirs {
		script += "echo $$ > " + dir + "/cgroup.procs && "
	}
	return []string{"sh", "-c", script + `exec "$0" "$@"`}
}

// kills returns how many processes of the group were killed because its memory limit was reached.
func (g group) kills(t *testing.T) int64 {
	t.Helper()
	return find(t, g.events, `(?m)^oom_kill (\d+)$`)
}

// peak returns the peak memory use of the group, in MiB.
func (g group) peak(t *testing.T) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(string(readFile(t, g.usage))), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n >> 20
}
