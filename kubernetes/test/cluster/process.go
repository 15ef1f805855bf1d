package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is a program of the rig. It ends at the latest when the test's process does.
type Process struct {
	Name string

	command []string
	env     []string
	log     string // path

	mu   sync.Mutex // guards what follows
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// Start starts the program, for the first time or again, with the same arguments and files.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = log, log, append(os.Environ(), p.env...)
	// The kernel sends it when the thread that started the program ends. Go ends only threads whose goroutine ended while
	// locked to them, and Place.Do always unlocks.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done = cmd, done
	return nil
}

// PID is that of the running program.
func (p *Process) PID() int {
	cmd, _ := p.now()
	return cmd.Process.Pid
}

// Ended tells whether the program has ended, or was never started.
func (p *Process) Ended() bool {
	cmd, done := p.now()
	if cmd == nil {
		return true
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Signal sends a signal: SIGSTOP and SIGCONT make a program that hangs for a while.
func (p *Process) Signal(s syscall.Signal) error {
	if p.Ended() {
		return os.ErrProcessDone
	}
	cmd, _ := p.now()
	return cmd.Process.Signal(s)
}

// Yield leaves the program only the time that no other wants, as if it were on another machine. What it starts later has no more.
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
		if err := unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	return nil
}

// Kill ends the program at once, and returns when it is gone.
func (p *Process) Kill() {
	if p.Signal(syscall.SIGKILL) == nil {
		_, done := p.now()
		<-done
	}
}

// Stop asks the program to end, and kills it when it does not.
func (p *Process) Stop() {
	if p.Signal(syscall.SIGTERM) != nil {
		return
	}
	_, done := p.now()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		p.Kill()
	}
}

// Log is the end of what the program wrote.
func (p *Process) Log() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	const most = 4000
	return p.Name + ":\n" + strings.TrimSpace(string(data[max(0, len(data)-most):]))
}

func (p *Process) now() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.done
}
