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

// NetNS is a network namespace. It has no name in the file system: it disappears with the last process and the last
// socket in it, so that a killed test leaves nothing behind.
type NetNS struct {
	ns *os.File
}

func newNetNS(t T) (*NetNS, error) {
	p := &NetNS{}
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
	// An address with duplicate address detection cannot be used for a second.
	return p, p.ip("link set lo up", "sysctl net.ipv6.conf.default.accept_dad 0", "sysctl net.ipv6.conf.all.accept_dad 0")
}

// Path returns the namespace as a file, for nsenter --net=PATH while the test runs.
func (p *NetNS) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.ns.Fd()) }

// Do runs f with its thread in the namespace. Sockets that f opens stay there; goroutines that it starts do not run
// there.
func (p *NetNS) Do(f func() error) error {
	return elsewhere(func() error {
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return f()
	})
}

// elsewhere runs f on a separate thread, which may change its network namespace, and switches the thread back.
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
		// The thread stays locked, so that no other goroutine uses it.
		return errors.Join(err, fmt.Errorf("leave a network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// Command returns a command that runs in the namespace and ends with the test's process.
func (p *NetNS) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + p.Path(), "--", name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// Process starts a program in the namespace, with its log in dir. It ends with the test.
func (p *NetNS) Process(t T, dir string, env []string, command ...string) (*Process, error) {
	name := filepath.Base(command[0])
	proc := &Process{server.Process{Name: name, Env: env, LogFile: filepath.Join(dir, name+".log"),
		Command: append([]string{"nsenter", "--net=" + p.Path(), "--"}, command...)}}
	t.Cleanup(proc.Kill)
	return proc, proc.Start()
}

// ip runs lines of ip -batch in the namespace. A line that begins with sysctl sets a sysctl.
func (p *NetNS) ip(lines ...string) error {
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

func (p *NetNS) sysctl(line string) error {
	name, value, _ := strings.Cut(line, " ")
	return p.Do(func() error {
		return os.WriteFile("/proc/sys/"+strings.ReplaceAll(name, ".", "/"), []byte(value), 0o600)
	})
}

// Listen listens on TCP in the namespace.
func (p *NetNS) Listen(addr string) (l net.Listener, err error) {
	err = p.Do(func() error { l, err = net.Listen("tcp", addr); return err })
	return l, err
}

// ListenPacket listens on UDP in the namespace.
func (p *NetNS) ListenPacket(addr string) (c net.PacketConn, err error) {
	err = p.Do(func() error { c, err = net.ListenPacket("udp", addr); return err })
	return c, err
}

// DialUDP opens a UDP socket in the namespace that is connected to one address.
func (p *NetNS) DialUDP(to netip.AddrPort) (c *net.UDPConn, err error) {
	err = p.Do(func() error { c, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); return err })
	return c, err
}

// Forward makes a TCP address of the test's own namespace, such as that of the API server, reachable at the same
// address in this one.
func (p *NetNS) Forward(t T, addr string) error {
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

// splice copies in both directions until both are done. If nothing listens at the address, the caller's connection
// ends.
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

// Dialed is the result of an attempt to connect.
type Dialed struct {
	Conn *net.TCPConn // nil if there is no connection
	Took time.Duration
	Lost int // SYNs that had to be sent again
	Err  error
}

// Refused reports whether the connection was refused by a reset or by ICMP, as opposed to a timeout.
func (d Dialed) Refused() bool {
	return d.Err != nil && !errors.Is(d.Err, os.ErrDeadlineExceeded) && !errors.Is(d.Err, context.DeadlineExceeded) &&
		!isTimeout(d.Err)
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Dial connects from the namespace by TCP, and counts the SYNs without a reply.
func (p *NetNS) Dial(to netip.AddrPort, limit time.Duration) Dialed {
	var d Dialed
	second := -1 // a second descriptor of the socket: the first one is closed if connecting fails
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

// Ping sends one echo request, and reports whether it was answered within the limit.
func (p *NetNS) Ping(to netip.Addr, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return p.Command(ctx, "ping", "-n", "-q", "-c", "1", "-W", "10", to.String()).Run() == nil
}
