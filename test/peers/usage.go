package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc: 100 per second on every Linux that Go supports.
const clockTick = 10 * time.Millisecond

// Usage is the resource usage of a server so far.
type Usage struct {
	CPU    time.Duration // user and system time of the server and the workers it forked
	Memory int64         // resident bytes
}

// Usage reads /proc. Memory is VmRSS. For a server of several processes it is the sum of their proportional shares,
// because VmRSS would count shared pages once for each process.
func (s *Server) Usage() (Usage, error) {
	pids := family(s.PID())
	var u Usage
	for _, pid := range pids {
		cpu, err := cpuTime(pid)
		if err != nil {
			return u, err
		}
		u.CPU += cpu
		file, key := "status", "VmRSS:"
		if len(pids) > 1 {
			file, key = "smaps_rollup", "Pss:"
		}
		kb, err := procKB(pid, file, key)
		if err != nil {
			return u, err
		}
		u.Memory += kb * 1024
	}
	return u, nil
}

// family returns a process and its descendants.
func family(pid int) []int {
	pids := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, family(child)...)
			}
		}
	}
	return pids
}

// cpuTime reads utime and stime, fields 14 and 15 of proc(5) stat. The command name before them may contain spaces,
// so counting starts after its closing bracket.
func cpuTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat: cannot read %q", pid, text)
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * clockTick, nil
}

// procKB returns a value of /proc in KiB, which the kernel writes as kB.
func procKB(pid int, file, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key); ok {
			return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s has no %s", pid, file, key)
}
