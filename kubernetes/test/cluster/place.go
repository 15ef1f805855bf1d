package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/server"
)

// Place is a network namespace. It has no name in the file system: it goes when the last process and the last socket in it
// are gone, so that a test that was killed leaves nothing behind.
type Place struct {
	ns *os.File
}

func newPlace(t T) (*Place, error) {
	p := &Place{}
	err := elsewhere(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("new network namespace: %w", err)
		}
		ns, err := os.Open("/proc/thread-self/ns/net")
		p.ns = ns
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { _ = p.ns.Close() })
	// An address that must first be found to be nobody else's cannot be used for a second.
	return p, p.ip("link set lo up", "sysctl net.ipv6.conf.default.accept_dad 0", "sysctl net.ipv6.conf.all.accept_dad 0")
}

// Path is the namespace as a file, for nsenter --net=PATH while the test runs.
func (p *Place) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.ns.Fd()) }

// Do runs f with its thread in the namespace. Sockets that f opens stay there; goroutines that it starts do not run there.
func (p *Place) Do(f func() error) error {
	return elsewhere(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// elsewhere runs f on a thread of its own, which may change its network namespace, and brings the thread home.
func elsewhere(f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer func() { _ = home.Close() }()
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		// The thread stays locked, so that nobody else gets it.
		return errors.Join(err, fmt.Errorf("leave a network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// Command is a command that will run in the namespace and end with the test's process.
func (p *Place) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + p.Path(), "--", name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Process starts a program in the namespace, with its log in dir. It ends with the test.
func (p *Place) Process(t T, dir string, env []string, command ...string) (*Process, error) {
	name := filepath.Base(command[0])
	proc := &Process{server.Process{Name: name, Env: env, LogFile: filepath.Join(dir, name+".log"),
		Command: append([]string{"nsenter", "--net=" + p.Path(), "--"}, command...)}}
	t.Cleanup(proc.Kill)
	return proc, proc.Start()
}

// ip runs lines of ip -batch in the namespace. Lines that begin with sysctl set one.
func (p *Place) ip(lines ...string) error {
	var batch bytes.Buffer
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, "sysctl "); ok {
			if err := p.sysctl(rest); err != nil {
				return err
			}
			continue
		}
		batch.WriteString(line + "\n")
	}
	ctx, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	cmd := p.Command(ctx, "ip", "-batch", "-")
	cmd.Stdin = &batch
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w\n%s", err, out)
	}
	return nil
}

func (p *Place) sysctl(line string) error {
	name, value, _ := strings.Cut(line, " ")
	return p.Do(func() error {
		return os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o600)
	})
}

// Listen listens on TCP in the namespace.
func (p *Place) Listen(addr string) (l net.Listener, err error) {
	err = p.Do(func() error { l, err = net.Listen("tcp", addr); return err })
	return l, err
}

// ListenPacket listens on UDP in the namespace.
func (p *Place) ListenPacket(addr string) (c net.PacketConn, err error) {
	err = p.Do(func() error { c, err = net.ListenPacket("udp", addr); return err })
	return c, err
}

// DialUDP makes a UDP socket in the namespace that talks to one address.
func (p *Place) DialUDP(to netip.AddrPort) (c *net.UDPConn, err error) {
	err = p.Do(func() error { c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); return err })
	return c, err
}

// Forward makes a TCP address of the test's own namespace, such as the API server's, reachable at the same address in
// this one.
func (p *Place) Forward(t T, addr string) error {
	l, err := p.Listen(addr)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go splice(in, addr)
		}
	}()
	return nil
}

// splice copies both ways until both are done. When there is nobody at the address, the caller sees its connection end.
func splice(in net.Conn, addr string) {
	defer func() { _ = in.Close() }()
	out, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, in)
		_ = out.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(in, out)
	_ = in.(*net.TCPConn).CloseWrite()
	<-done
}

// Dialed is how an attempt to connect went.
type Dialed struct {
	Conn *net.TCPConn // nil when there was none
	Took time.Duration
	Lost int // SYNs that had to be sent again
	Err  error
}

// Refused tells whether somebody said no, by a reset or by ICMP, instead of nothing at all.
func (d Dialed) Refused() bool {
	return d.Err != nil && !errors.Is(d.Err, os.ErrDeadlineExceeded) && !errors.Is(d.Err, context.DeadlineExceeded) && !isTimeout(d.Err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Dial connects from the namespace by TCP, and counts the SYNs that got no answer.
func (p *Place) Dial(to netip.AddrPort, limit time.Duration) Dialed {
	var d Dialed
	second := -1 // a second descriptor of the socket: the first is closed when connecting fails
	dialer := net.Dialer{Timeout: limit, KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) { second, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
			return cerr
		}
		return err
	}}
	err := p.Do(func() error {
		begun := time.Now()
		conn, err := dialer.Dial("tcp", to.String())
		d.Took = time.Since(begun)
		if err == nil {
			d.Conn = conn.(*net.TCPConn)
		}
		return err
	})
	d.Err = err
	if second >= 0 {
		if info, err := unix.GetsockoptTCPInfo(second, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			d.Lost = int(info.Total_retrans)
		}
		_ = unix.Close(second)
	}
	return d
}

// Ping sends one echo request, and tells whether it was answered within the limit.
func (p *Place) Ping(to netip.Addr, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.Command(ctx, "ping", "-n", "-q", "-c", "1", "-W", "10", to.String()).Run() == nil
}
