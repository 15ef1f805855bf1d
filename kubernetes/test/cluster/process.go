package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/server"
)

// Process is a running program.
type Process struct{ server.Process }

// Yield leaves the program only the CPU time that no other program needs, as if it were on another machine. The same
// applies to its later children.
func (p *Process) Yield() error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID()))
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE},
			0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// Log returns the end of the program's output, for messages.
func (p *Process) Log() string { return p.LogTail() }
