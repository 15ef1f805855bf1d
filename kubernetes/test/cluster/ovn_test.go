package cluster_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
)

const (
	soon  = 20 * time.Second       // for events that must happen
	never = 300 * time.Millisecond // for events that must not happen
)

// do fails the test if a command fails, and returns its output.
func do(t *testing.T) func(out string, err error) string {
	return func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// TestOVN has one node with one pod. Without a rule it reaches all addresses, and with a deny rule only those in the
// address set.
func TestOVN(t *testing.T) {
	cluster.Need(t)
	o := cluster.StartOVN(t, cluster.OVNOptions{})
	o.External.Echo(t, 80)
	pod, other := o.Pod(t, "apps", "web"), o.Pod(t, "apps", "db")
	must := do(t)
	t.Logf("OVN %s", must(o.Version()))

	t.Run("reaches all", func(t *testing.T) {
		for _, to := range []string{"198.18.7.7", "198.19.255.1", "192.0.2.1", "2001:db8::7", "2001:db8:ffff::1"} {
			addr := netip.MustParseAddr(to)
			if !pod.Ping(addr, soon) {
				t.Errorf("no answer to a ping from %s", to)
			}
			if got := talk(t, pod, addr); got != nil {
				t.Errorf("TCP to %s: %v", to, got)
			}
			if err := talkUDP(t, pod, addr); err != nil {
				t.Errorf("UDP to %s: %v", to, err)
			}
		}
		for _, to := range other.Addrs {
			if !pod.Ping(to, soon) {
				t.Errorf("no answer to a ping from the other pod at %s", to)
			}
		}
	})
	t.Run("forward", func(t *testing.T) { testForward(t, pod) })
	t.Run("refused", func(t *testing.T) {
		if d := pod.Dial(netip.MustParseAddrPort("198.18.7.7:81"), soon); !d.Refused() {
			t.Errorf("a port where nobody listens: %+v, want a refusal", d)
		}
	})
	t.Run("rules", func(t *testing.T) { testRules(t, o, pod, other) })
}

func testRules(t *testing.T, o *cluster.OVN, pod, other *cluster.Pod) {
	must := do(t)
	must(o.NBCtl("--wait=hv",
		"create", "Address_Set", "name=allowed", "addresses=198.18.1.1", "--", "create", "Address_Set", "name=allowed6",
		`addresses="2001:db8::1"`,
		"--", "pg-add", "apps", pod.Port,
		"--", "acl-add", "apps", "to-lport", "10000", "(ip4.dst == $allowed || ip6.dst == $allowed6) && inport == @apps",
		"allow",
		"--", "acl-add", "apps", "to-lport", "9999", "(ip4.dst == 0.0.0.0/0 && ip4.dst != 10.128.0.0/16) && inport == @apps",
		"drop",
		"--", "acl-add", "apps", "to-lport", "9998", "(ip6.dst == ::/0 && ip6.dst != fd00:10:128::/48) && inport == @apps",
		"drop"))
	expect := func(to string, want bool) {
		t.Helper()
		addr, limit := netip.MustParseAddr(to), never
		if want {
			limit = soon
		}
		if got := pod.Ping(addr, limit); got != want {
			t.Errorf("ping to %s answered: %v, want %v", to, got, want)
		}
		d := pod.Dial(netip.AddrPortFrom(addr, 80), limit)
		if got := d.Conn != nil; got != want || d.Refused() {
			t.Errorf("TCP to %s: %v, want connected %v", to, d.Err, want)
		}
		if d.Conn != nil {
			_ = d.Conn.Close()
		}
	}
	expect("198.18.1.1", true)
	expect("2001:db8::1", true)
	expect("198.18.1.2", false)
	expect("2001:db8::2", false)
	for _, to := range other.Addrs {
		if !pod.Ping(to, soon) {
			t.Errorf("no answer to a ping from the other pod at %s", to)
		}
	}

	must(o.NBCtl("--wait=hv", "add", "Address_Set", "allowed", "addresses", "198.18.1.2", "--", "remove", "Address_Set",
		"allowed", "addresses", "198.18.1.1"))
	expect("198.18.1.2", true)
	expect("198.18.1.1", false)

	// A lost SYN is counted even if the connection succeeds later.
	begun, done := time.Now(), make(chan cluster.Dialed)
	go func() { done <- pod.Dial(netip.MustParseAddrPort("198.18.1.3:80"), soon) }()
	for time.Since(begun) < never { // the first SYN is sent within this time, and the second one only after a second
		must(o.NBCtl("--wait=hv", "sync"))
	}
	must(o.NBCtl("--wait=hv", "add", "Address_Set", "allowed", "addresses", "198.18.1.3"))
	if d := <-done; d.Conn == nil || d.Lost == 0 {
		t.Errorf("a connection whose first SYN was dropped: %+v, want one with a SYN that was lost", d)
	}
	if d := pod.Dial(netip.MustParseAddrPort("198.18.1.3:80"), soon); d.Conn == nil || d.Lost != 0 {
		t.Errorf("a connection that is allowed: %+v, want one with no SYN lost", d)
	}

	packet := `inport=="` + pod.Port + `" && eth.src==` + pod.MAC +
		` && eth.dst==0a:58:0a:80:00:01 && ip.ttl==64 && icmp4 && ip4.src==` + pod.Addrs[0].String() + ` && ip4.dst==`
	if got := must(o.Trace(packet+"198.18.1.2", "--minimal")); !strings.Contains(got, `output("internet")`) {
		t.Errorf("ovn-trace of what is allowed: %s", got)
	}
	if got := must(o.Trace(packet+"198.18.1.1", "--minimal")); strings.Contains(got, "output") {
		t.Errorf("ovn-trace of what is not allowed: %s", got)
	}
}

// talk connects and checks that its data comes back.
func talk(t *testing.T, from *cluster.Pod, to netip.Addr) error {
	t.Helper()
	d := from.Dial(netip.AddrPortFrom(to, 80), soon)
	if d.Err != nil {
		return d.Err
	}
	defer func() { _ = d.Conn.Close() }()
	said := bytes.Repeat([]byte("hello"), 5000)
	if err := d.Conn.SetDeadline(time.Now().Add(soon)); err != nil {
		return err
	}
	if _, err := d.Conn.Write(said); err != nil {
		return err
	}
	heard := make([]byte, len(said))
	if _, err := io.ReadFull(d.Conn, heard); err != nil {
		return err
	}
	if !bytes.Equal(said, heard) {
		t.Error("the echo is another")
	}
	return nil
}

func talkUDP(t *testing.T, from *cluster.Pod, to netip.Addr) error {
	t.Helper()
	c, err := from.DialUDP(netip.AddrPortFrom(to, 80))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(soon)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	n, err := c.Read(make([]byte, 100))
	if err == nil && n != 5 {
		t.Errorf("an echo of %d bytes, want 5", n)
	}
	return err
}

// testForward reaches a listener of the machine's loopback, such as the API server, from a pod's loopback. It also
// checks that a program in the pod sees the pod's network.
func testForward(t *testing.T, pod *cluster.Pod) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.WriteString(c, "hello")
			_ = c.Close()
		}
	}()
	at := netip.MustParseAddrPort(l.Addr().String())
	if d := pod.Dial(at, soon); !d.Refused() {
		t.Errorf("before it is forwarded: %+v, want a refusal", d)
	}
	if err := pod.Forward(t, at.String()); err != nil {
		t.Fatal(err)
	}
	d := pod.Dial(at, soon)
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	defer func() { _ = d.Conn.Close() }()
	if err := d.Conn.SetDeadline(time.Now().Add(soon)); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(d.Conn); string(got) != "hello" {
		t.Errorf("through it comes %q, %v", got, err)
	}
	p, err := pod.Process(t, t.TempDir(), []string{"GREETING=hello"}, "sh", "-c",
		"echo $GREETING; ip -4 -brief address show eth0; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(soon); !strings.Contains(p.Log(), pod.Addrs[0].String()) ||
		!strings.Contains(p.Log(), "hello"); {
		if time.Now().After(end) {
			t.Fatalf("the program says %s", p.Log())
		}
	}
	if err := p.Yield(); err != nil {
		t.Fatal(err)
	}
	if a, err := unix.SchedGetAttr(p.PID(), 0); err != nil || a.Policy != unix.SCHED_IDLE {
		t.Errorf("having yielded, the program is scheduled as %+v, %v", a, err)
	}
}

// TestConfirmed increments nb_cfg by hand and checks that hv_cfg follows when the switch has applied everything, and
// not before.
func TestConfirmed(t *testing.T) {
	cluster.Need(t)
	o := cluster.StartOVN(t, cluster.OVNOptions{Number: 7})
	must := do(t)
	if ok, err := o.HasColumn("NB_Global", "hv_cfg"); err != nil || !ok {
		t.Fatalf("HasColumn(NB_Global, hv_cfg) = %v, %v", ok, err)
	}
	if ok, err := o.HasColumn("NB_Global", "no_such"); err != nil || ok {
		t.Errorf("HasColumn(NB_Global, no_such) = %v, %v", ok, err)
	}
	hv := func() string { return must(o.NBCtl("get", "NB_Global", ".", "hv_cfg")) }
	begun := time.Now()
	must(o.NBCtl("set", "NB_Global", ".", "nb_cfg=1000"))
	for hv() != "1000" {
		if time.Since(begun) > soon {
			t.Fatal("hv_cfg does not follow nb_cfg")
		}
	}
	t.Logf("nb_cfg was seen as hv_cfg after %v at most, two processes included", time.Since(begun).Round(time.Millisecond))

	o.Controller.Kill()
	must(o.NBCtl("--wait=sb", "set", "NB_Global", ".", "nb_cfg=1001"))
	if got := hv(); got != "1000" {
		t.Errorf("hv_cfg = %s while ovn-controller is dead, want 1000", got)
	}
	if err := o.Controller.Start(); err != nil {
		t.Fatal(err)
	}
	if err := o.Sync(); err != nil {
		t.Fatal(err)
	}
}

// TestTwoNodes connects two nodes through one internet.
func TestTwoNodes(t *testing.T) {
	cluster.Need(t)
	ext := cluster.StartExternal(t)
	a := cluster.StartOVN(t, cluster.OVNOptions{Number: 1, External: ext}).Pod(t, "apps", "a")
	b := cluster.StartOVN(t, cluster.OVNOptions{Number: 2, External: ext}).Pod(t, "apps", "b")
	for i, to := range b.Addrs {
		if !a.Ping(to, soon) {
			t.Errorf("no answer from %s to %s", to, a.Addrs[i])
		}
	}
}

// TestNothingIsLeft checks the resources of a node: its processes have their own network while they run, and afterwards
// there is neither a process nor a folder. It does not compare interfaces of the machine, because other programs change
// them too.
func TestNothingIsLeft(t *testing.T) {
	cluster.Need(t)
	home := link(t, "/proc/self/ns/net")
	var dir string
	var processes []*cluster.Process
	t.Run("node", func(t *testing.T) {
		o := cluster.StartOVN(t, cluster.OVNOptions{})
		pod := o.Pod(t, "apps", "web")
		dir, processes = o.Dir, []*cluster.Process{o.NBServer, o.SBServer, o.Northd, o.Controller, o.Vswitchd}
		for _, p := range processes {
			if link(t, fmt.Sprintf("/proc/%d/ns/net", p.PID())) == home {
				t.Errorf("%s runs in the network of the machine", p.Name)
			}
		}
		if link(t, pod.Path()) == home || link(t, o.External.Path()) == home {
			t.Error("a pod or the internet is in the network of the machine")
		}
	})
	for _, p := range processes {
		if !p.Ended() {
			t.Errorf("%s still runs", p.Name)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func link(t *testing.T, path string) string {
	t.Helper()
	to, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return to
}
