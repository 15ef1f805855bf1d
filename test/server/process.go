package server

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Patience is how long an operation may take before it counts as hanging. It is not a performance limit.
const Patience = 60 * time.Second

// Process is a program that a test or a benchmark runs. It can be started again after it ended. It ends at the latest
// with the process that started it.
type Process struct {
	Name    string   // for messages
	Command []string // the program and its arguments
	Env     []string // added to the environment of the caller
	WorkDir string   // working directory; the caller's if empty
	LogFile string   // receives standard output and standard error; a second start appends

	mu    sync.Mutex // guards the following
	cmd   *exec.Cmd
	done  chan struct{} // closed when cmd has ended
	began time.Time
}

// Start starts the program and does not wait for it.
func (p *Process) Start() error {
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, p.WorkDir
	cmd.Env = append(os.Environ(), p.Env...)
	// The process group lets End reach the workers that a server forks, and nothing else. The kernel sends Pdeathsig
	// when the thread that started the program ends. Go ends a thread only when its goroutine ends while locked to it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the result is in its log and in ProcessState
		close(done)
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.done, p.began = cmd, done, began
	return nil
}

func (p *Process) now() (*exec.Cmd, chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd, p.done
}

// Began returns the time of the last start.
func (p *Process) Began() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.began
}

// PID returns the process ID of the last start.
func (p *Process) PID() int {
	cmd, _ := p.now()
	return cmd.Process.Pid
}

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} {
	_, done := p.now()
	return done
}

// Ended reports whether the program has ended or was never started.
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

// Signal sends a signal. SIGSTOP and SIGCONT make a program hang for a while.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.Ended() {
		return os.ErrProcessDone
	}
	cmd, _ := p.now()
	return cmd.Process.Signal(sig)
}

// End sends a signal and returns the exit status when the program has ended: -1 if a signal ended it. An error means
// that the program ignored the signal and was killed.
func (p *Process) End(sig syscall.Signal) (status int, err error) {
	if cmd, _ := p.now(); cmd == nil {
		return 0, nil
	}
	_ = p.Signal(sig) // it may have ended by itself
	return p.Wait()
}

// Kill ends the program with SIGKILL, and returns when it has ended.
func (p *Process) Kill() { _, _ = p.End(syscall.SIGKILL) }

// Stop ends the program with SIGTERM, and kills it when it does not end.
func (p *Process) Stop() { _, _ = p.End(syscall.SIGTERM) }

// Wait returns the exit status when the program has ended. A program that does not end in time is killed.
func (p *Process) Wait() (status int, err error) {
	cmd, done := p.now()
	select {
	case <-done:
	case <-time.After(Patience):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // a Go program prints the stacks of its goroutines
		select {
		case <-done:
		case <-time.After(time.Second):
		}
		err = fmt.Errorf("%s did not end within %v\n%s", p.Name, Patience, p.Log())
	}
	// Kill the rest of the group: a worker may outlive its parent.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-done
	return cmd.ProcessState.ExitCode(), err
}

// Log returns the output of the program.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.LogFile)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LogTail returns the last lines of the log, for messages.
func (p *Process) LogTail() string {
	lines := strings.Split(strings.TrimSpace(p.Log()), "\n")
	return "the log of " + p.Name + " ends with:\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}
