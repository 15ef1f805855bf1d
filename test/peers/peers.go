// Package peers starts real DNS servers on loopback, so that tests and benchmarks can compare them with nameplane.
//
// Start with Start in peers.go. programs.go and secondaries.go configure the servers.
package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// Zone is one zone and its master file.
type Zone struct {
	Name string // fully qualified
	File string // absolute path
}

// Options configure a server. Not every Program supports all of them.
type Options struct {
	Port   int    // to serve; a free port if 0
	Core   string // CPU list for taskset, such as "0"; empty leaves the scheduler free
	Update bool   // accept dynamic updates from loopback (BIND only)

	Transfer bool // let loopback transfer the zones (nameplane, Knot, NSD)

	Config string // additional configuration in YAML (nameplane only)

	Ready time.Duration // how long the zones may take to load; default 30s, because a cold disk is slow

	Primary string // address from which secondaries transfer their zones
	Notify  string // address that BIND notifies of changes, and that may transfer them
	Key     Key    // TSIG key of these messages; the zero Key for none
	TLS     TLS    // transfers over TLS (BIND, and NSD as a secondary); the zero TLS for none
}

// TLS has the files for transfers over TLS.
type TLS struct {
	CA        string // CAs of the other server
	Name      string // name in the certificate of the other server
	Cert, Key string // own certificate; none if empty
	Protocols string // versions of TLS that BIND may use; all if empty
}

// Program is a server that can be started any number of times.
type Program struct {
	Name    string
	Binary  string // searched in PATH and the sbin folders when it has no slash
	Package string // the Debian package that contains it, for the error message

	// configure writes the configuration into the site's folder and returns the arguments of the command.
	configure func(site) (args []string, err error)

	// load loads the zones into a server that does not read them from its configuration; nil for the others.
	load func(context.Context, *Server, []Zone) error
}

// site is the input of configure.
type site struct {
	dir   string
	port  int
	http  string // a second free loopback address, for servers with a management API
	zones []Zone
	opts  Options
}

// Server is one running server. Stop removes its folder.
type Server struct {
	*server.Process
	Addr string // host:port of UDP and TCP
	HTTP string // URL of the management API, or empty
	TLS  string // host:port of TLS; only of BIND with a certificate
	Dir  string // its temporary folder

	program Program
	opts    Options
}

// errEnded means that the port was taken, or that the server refused its configuration.
var errEnded = errors.New("the process ended")

// Start runs the program with the zones and returns when it answers for every zone. Another process may take the port
// before the server binds it, so a failed start is tried again.
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

// Start starts a program for a test. The server ends with the test.
func Start(t testing.TB, p Program, zones []Zone, opts Options) *Server {
	t.Helper()
	s, err := p.Start(t.Context(), zones, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// find returns the path of a program. A missing program is an error and not a skipped test: the error says how to
// install it.
func (p Program) find() (string, error) {
	if path, err := need.Installed(p.Binary); err == nil {
		return path, nil
	}
	if p.Package == "" {
		return "", fmt.Errorf("%s: %s is not there; build it first", p.Name, p.Binary)
	}
	return "", fmt.Errorf("%s is not installed: run make test, which installs it (Debian package %s)", p.Name, p.Package)
}

// startOnce starts a server on free ports. Another program can take a port before the server binds it; then the server
// ends, and Start tries again.
func (p Program) startOnce(ctx context.Context, zones []Zone, opts Options) (*Server, error) {
	dir, err := os.MkdirTemp("", "peer-"+strings.ToLower(p.Name)+"-")
	if err != nil {
		return nil, err
	}
	// A server that drops root after binding must still be able to read its folder.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	port := opts.Port
	if port == 0 {
		if port, err = server.FreePort(); err != nil {
			return nil, err
		}
	}
	httpPort, err := server.FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Process: &server.Process{Name: p.Name, WorkDir: dir, LogFile: filepath.Join(dir, "log")},
		Addr:    net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Dir:     dir,
		program: p,
		opts:    opts,
	}
	httpAddr := net.JoinHostPort("127.0.0.1", strconv.Itoa(httpPort))
	if opts.TLS.Cert != "" {
		s.TLS = httpAddr
	}
	args, err := p.configure(site{dir: dir, port: port, http: httpAddr, zones: zones, opts: opts})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if p.load != nil {
		s.HTTP = "http://" + httpAddr
	}
	s.Command = append([]string{p.Binary}, args...)
	if opts.Core != "" {
		// taskset replaces itself by the server, so the PID is the server's.
		s.Command = append([]string{"taskset", "-c", opts.Core}, s.Command...)
	}
	if err := s.startAndLoad(ctx, zones); err != nil {
		err = fmt.Errorf("%s did not start: %w\n%s", p.Name, err, s.LogTail())
		s.Stop()
		return nil, err
	}
	return s, nil
}

// startAndLoad starts the process, loads the zones and waits for their answers.
func (s *Server) startAndLoad(ctx context.Context, zones []Zone) error {
	if err := s.Start(); err != nil {
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

// WaitFor blocks until the server gives an authoritative answer for the zone.
func (s *Server) WaitFor(ctx context.Context, zone string) error {
	client := dns.Client{Timeout: 200 * time.Millisecond}
	m := new(dns.Msg).SetQuestion(zone, dns.TypeSOA)
	for {
		r, _, err := client.ExchangeContext(ctx, m, s.Addr)
		if err == nil && r.Rcode == dns.RcodeSuccess && r.Authoritative {
			return nil
		}
		select {
		case <-s.Done():
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("no authoritative SOA for %s: %w", zone, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Stop ends the server and its workers, first with SIGTERM, and removes its folder.
func (s *Server) Stop() {
	s.Process.Stop()
	_ = os.RemoveAll(s.Dir)
}
