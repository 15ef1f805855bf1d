// Package peers starts real DNS servers on loopback, so that tests and
// benchmarks can put the same question to them and to us.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/miekg/dns"
)

// Zone is one zone and the master file that holds it.
type Zone struct {
	Name string // fully qualified
	File string // absolute path
}

// Options are what a caller may ask of any server.
type Options struct {
	Core   string // CPU list for taskset, such as "0"; empty leaves the scheduler free
	Update bool   // accept dynamic updates from loopback (BIND only)

	Transfer bool // let loopback transfer the zones (nameplane, Knot, NSD)

	Config string // more of a configuration, in YAML (nameplane only)

	Ready time.Duration // how long the zones may take to load; default 30s, because a cold disk is slow

	Primary string // where secondaries get their zones
	Notify  string // whom BIND tells of changes, and lets transfer
	Key     Key    // to sign what they say; the zero Key for none
}

// Program is a server that can be started any number of times.
type Program struct {
	Name    string
	Binary  string // looked up in PATH and the sbin folders when it has no slash
	Package string // the Debian package that brings it, for the error sentence

	// configure writes the configuration into the site's folder and returns
	// the arguments of the command.
	configure func(site) (args []string, err error)

	// load brings the zones into a server that does not read them from its
	// configuration; nil for those that do.
	load func(context.Context, *Server, []Zone) error
}

// site is what a configuration is written from.
type site struct {
	dir   string
	port  int
	http  string // a second free loopback address, for servers with a management door
	zones []Zone
	opts  Options
}

// Server is one running server. Its folder goes away with it.
type Server struct {
	Name string
	Addr string // host:port of UDP and TCP
	HTTP string // URL of the management door, or empty
	PID  int
	Dir  string // its temporary folder
	Log  string // path of what it wrote

	program Program
	opts    Options
	args    []string
	cmd     *exec.Cmd
	done    chan struct{} // closed when the process has ended
}

// errEnded is what a taken port looks like from outside, or a configuration
// that the server refuses.
var errEnded = errors.New("the process ended")

// Start runs the program with the zones and returns when every zone is
// answered. A port may be taken between the moment it was found free and the
// moment the server binds it, so a failed start is tried again.
func (p Program) Start(ctx context.Context, zones []Zone, opts Options) (*Server, error) {
	binary, err := p.find()
	if err != nil {
		return nil, err
	}
	p.Binary = binary
	var last error
	for range 3 {
		s, err := p.startOnce(ctx, zones, opts)
		if err == nil {
			return s, nil
		}
		if last = err; !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, last
}

// Installed reports whether the program can be started here.
func (p Program) Installed() bool {
	_, err := p.find()
	return err == nil
}

func (p Program) find() (string, error) {
	if path, err := exec.LookPath(p.Binary); err == nil {
		return path, nil
	}
	// Servers live in sbin, which is not in the PATH of ordinary users.
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, p.Binary)); err == nil {
			return path, nil
		}
	}
	if p.Package == "" {
		return "", fmt.Errorf("%s: %s is not there; build it first", p.Name, p.Binary)
	}
	return "", fmt.Errorf("%s is not installed: run make test, which installs it (Debian package %s)", p.Name, p.Package)
}

func (p Program) startOnce(ctx context.Context, zones []Zone, opts Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "peer-"+strings.ToLower(p.Name)+"-")
	if err != nil {
		return nil, err
	}
	// A server that gives up root after binding must still reach its folder.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	httpPort, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Name:    p.Name,
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Dir:     dir,
		Log:     filepath.Join(dir, "log"),
		program: p,
		opts:    opts,
	}
	door := net.JoinHostPort("127.0.0.1", strconv.Itoa(httpPort))
	args, err := p.configure(site{dir: dir, port: port, http: door, zones: zones, opts: opts})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if p.load != nil {
		s.HTTP = "http://" + door
	}
	if err := s.bring(ctx, args, zones); err != nil {
		err = fmt.Errorf("%s did not start: %w\n%s", p.Name, err, s.logTail())
		s.Stop()
		return nil, err
	}
	return s, nil
}

// bring starts the process, loads the zones and waits for their answers.
func (s *Server) bring(ctx context.Context, args []string, zones []Zone) error {
	if err := s.exec(args); err != nil {
		return err
	}
	limit := s.opts.Ready
	if limit == 0 {
		limit = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if s.program.load != nil {
		if err := s.program.load(ctx, s, zones); err != nil {
			return err
		}
	}
	for _, z := range zones {
		if err := s.WaitFor(ctx, z.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) exec(args []string) error {
	s.args = args
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the child has its own copy
	argv := append([]string{s.program.Binary}, args...)
	if s.opts.Core != "" {
		// taskset replaces itself by the server, so the PID stays the server's.
		argv = append([]string{"taskset", "-c", s.opts.Core}, argv...)
	}
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Dir = s.Dir
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// A group of its own, so that Stop reaches the workers a server forks and
	// nothing else.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.PID = s.cmd.Process.Pid
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(done)
	}(s.cmd, s.done)
	return nil
}

// WaitFor returns when the server answers for the zone with authority.
func (s *Server) WaitFor(ctx context.Context, zone string) error {
	client := dns.Client{Timeout: 200 * time.Millisecond}
	m := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
	for {
		r, _, err := client.ExchangeContext(ctx, m, s.Addr)
		if err == nil && r.Rcode == dns.RcodeSuccess && r.Authoritative {
			return nil
		}
		select {
		case <-s.done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("no authoritative SOA for %s: %w", zone, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Stop ends the server and its workers, gently first, and removes its folder.
func (s *Server) Stop() {
	s.end(syscall.SIGTERM)
	_ = os.RemoveAll(s.Dir)
}

// StopProcess ends the server and keeps its folder, for StartProcess.
func (s *Server) StopProcess() {
	s.end(syscall.SIGTERM)
}

// StartProcess starts a stopped server on the same folder and port. It returns
// as soon as the process runs; WaitFor tells when it answers.
func (s *Server) StartProcess() error {
	return s.exec(s.args)
}

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = syscall.Kill(s.PID, sig)
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
	}
	// What is left of the group: a worker that outlived its parent.
	_ = syscall.Kill(-s.PID, syscall.SIGKILL)
	<-s.done
}

func (s *Server) logTail() string {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return "no log: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "its log ends with:\n" + strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// freePort finds a loopback port that is free for UDP and TCP alike.
func freePort() (int, error) {
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		u, err := net.ListenPacket("udp", l.Addr().String())
		l.Close()
		if err != nil {
			continue
		}
		u.Close()
		return port, nil
	}
	return 0, errors.New("no loopback port is free for both UDP and TCP")
}
