package deploy

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
	"github.com/nameplane/nameplane/test/server"
)

func (s *stage) file(name string) string { return filepath.Join(s.dir, name) }

func (s *stage) build(t *testing.T) {
	t.Helper()
	if err := rig.Build(s.dir); err != nil {
		t.Fatal(err)
	}
}

// startOVN starts the databases and northd. There is no switch; northd confirms instead.
func (s *stage) startOVN(t *testing.T) {
	t.Helper()
	s.nb = s.file("ovnnb_db.sock")
	for name, schema := range map[string]string{s.nb: "ovn-nb", s.file("ovnsb_db.sock"): "ovn-sb"} {
		if out, err := exec.Command("ovsdb-tool", "create", name+".db", "/usr/share/ovn/"+schema+
			".ovsschema").CombinedOutput(); err != nil {
			t.Fatalf("ovsdb-tool: %v\n%s", err, out)
		}
		s.start(t, schema, program("ovsdb-server"), "--unixctl="+name+".ctl", "--remote=punix:"+name, name+".db")
	}
	s.start(t, "northd", program("ovn-northd"), "--unixctl="+s.nb+".northd", "--ovnnb-db=unix:"+s.nb, "--ovnsb-db=unix:"+
		s.file("ovnsb_db.sock"))
	soon(t, "OVN", func() error {
		out, err := exec.Command("ovn-nbctl", "--db=unix:"+s.nb, "--timeout=10", "--wait=sb", "sync").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// program returns the path of a server that may not be in PATH.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	return "/usr/sbin/" + name
}

func (s *stage) start(t *testing.T, name string, argv ...string) *server.Process {
	t.Helper()
	p := &server.Process{Name: name, Command: argv, LogFile: s.file(name + ".log")}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("%s:\n%s", name, p.Log())
		}
	})
	return p
}

// startPart runs the command of a manifest, with its own account, and returns when it is ready.
func (s *stage) startPart(t *testing.T, manifest string, more ...string) *server.Process {
	t.Helper()
	pod := podOf(t, manifest)
	health := freePort(t)
	args := append([]string{s.file("nameplane-egress")}, expand(pod.Containers[0].Args)...)
	args = append(args, "--kubeconfig="+s.kubeconfig(t, "ovn-kubernetes", pod.ServiceAccountName),
		"--metrics-addr=127.0.0.1:0", "--health-addr="+health)
	p := s.start(t, pod.Containers[0].Name, append(args, more...)...)
	soon(t, p.Name+" is ready", func() error {
		resp, err := http.Get("http://" + health + pod.Containers[0].ReadinessProbe.HTTPGet.Path)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resp.Status, p.Log())
		}
		return nil
	})
	return p
}

// expand replaces $(NAME) like the kubelet.
func expand(args []string) []string {
	out := slices.Clone(args)
	for i := range out {
		out[i] = strings.NewReplacer("$(NODE)", "n1", "$(NODE_ADDRESS)", "127.0.0.1").Replace(out[i])
	}
	return out
}

func (s *stage) kubeconfig(t *testing.T, namespace, account string) string {
	t.Helper()
	cfg, err := s.ConfigFor(namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	file := s.file(account + ".conf")
	if err := s.Kubeconfig(cfg, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// soon retries until there is no error.
func soon(t *testing.T, what string, ask func() error) {
	t.Helper()
	begun := time.Now()
	for {
		err := ask()
		if err == nil {
			t.Logf("%s: after %v", what, time.Since(begun).Round(time.Millisecond))
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// shortDir creates a folder with a short path: socket paths must not exceed 107 bytes.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "egress-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// freePort returns an address of loopback on which nothing listens yet.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// upstream is the rest of the DNS: every name has one address, for a second.
type upstream struct {
	addr    string
	address atomic.Pointer[string]
}

func startUpstream(t *testing.T) *upstream {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{addr: pc.LocalAddr().String()}
	u.set("192.0.2.10")
	srv := &dns.Server{PacketConn: pc, Handler: u}
	done := make(chan error, 1)
	go func() { done <- srv.ActivateAndServe() }()
	t.Cleanup(func() {
		_ = srv.Shutdown()
		<-done
	})
	return u
}

func (u *upstream) set(address string) { u.address.Store(&address) }

// ServeDNS implements dns.Handler.
func (u *upstream) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	m := new(dns.Msg)
	m.SetReply(r)
	if q := r.Question[0]; q.Qtype == dns.TypeA {
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
			A: net.ParseIP(*u.address.Load())}}
	}
	_ = w.WriteMsg(m)
}

var shBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// certificates creates those of both sides, with the commands in the documentation.
func (s *stage) certificates(t *testing.T) {
	t.Helper()
	for _, m := range shBlock.FindAllStringSubmatch(string(read(t, root+"/docs/reference/egress.md")), -1) {
		if !strings.Contains(m[1], "openssl") {
			continue
		}
		cmd := exec.Command("bash", "-eu", "-c", m[1])
		cmd.Dir = s.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	t.Fatal("docs/reference/egress.md does not say how certificates are made")
}

// startCoreDNS runs CoreDNS with the Corefile of the examples. Its other plugins read the cluster as an administrator,
// since their rights are not tested here.
func (s *stage) startCoreDNS(t *testing.T) *server.Process {
	t.Helper()
	admin, tls := s.file("admin.conf"), s.file("egress-tls")
	if err := s.Kubeconfig(s.Config, admin); err != nil {
		t.Fatal(err)
	}
	var p *server.Process
	p, s.dns = s.coredns(t, string(read(t, egressDir+"/examples/Corefile")), [][2]string{
		{"health {", "health " + freePort(t) + " {"},
		{"lameduck 5s", "lameduck 0s"},
		{"    ready\n", "    ready 127.0.0.1:0\n"},
		{"pods insecure", "kubeconfig " + admin},
		{"prometheus :9153", "prometheus 127.0.0.1:0"},
		{"agents service", "agents " + s.hold + "\n        agents service"},
		{"/etc/nameplane-tls/tls.crt /etc/nameplane-tls/tls.key /etc/nameplane-tls/ca.crt", tls + "/nameplane-coredns.crt " +
			tls + "/nameplane-coredns.key " + tls + "/ca.crt"},
		{"forward . /etc/resolv.conf", "forward . " + s.upstream.addr},
	})
	return p
}

var corefileBlock = regexp.MustCompile("(?ms)^```corefile\n(.*?)^```$")

// tryCorefiles starts CoreDNS with every Corefile of the documentation.
func (s *stage) tryCorefiles(t *testing.T) {
	t.Helper()
	all := corefileBlock.FindAllStringSubmatch(string(read(t, root+"/docs/reference/egress.md")), -1)
	if len(all) == 0 {
		t.Error("docs/reference/egress.md has no Corefile")
	}
	for _, m := range all {
		p, _ := s.coredns(t, m[1], [][2]string{{"namespaces openshift-ovn-kubernetes", "namespaces ovn-kubernetes"},
			{"forward . 192.0.2.53", "forward . " + s.upstream.addr}})
		p.Stop()
	}
}

// coredns runs CoreDNS with a Corefile, changed so that it stays on loopback, and returns when it answers.
func (s *stage) coredns(t *testing.T, text string, changes [][2]string) (p *server.Process, at string) {
	t.Helper()
	at = freePort(t)
	_, port, _ := net.SplitHostPort(at)
	for _, change := range append(changes, [2]string{".:53 {", ".:" + port + " {\n    bind 127.0.0.1"},
		[2]string{"ocp_dnsnameresolver {", "ocp_dnsnameresolver {\n        kubeconfig " +
			s.kubeconfig(t, "kube-system", "coredns")}) {
		if strings.Count(text, change[0]) != 1 {
			t.Fatalf("the Corefile has not one %q", change[0])
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	file := s.file("Corefile." + port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p = s.start(t, "coredns", s.file("nameplane-coredns"), "-conf", file)
	soon(t, "CoreDNS answers", func() error {
		m := new(dns.Msg)
		m.SetQuestion("www.example.org.", dns.TypeA)
		r, err := dns.Exchange(m, at)
		if err != nil {
			return err
		}
		if r.Rcode != dns.RcodeSuccess {
			return fmt.Errorf("it says %s", dns.RcodeToString[r.Rcode])
		}
		return nil
	})
	return p, at
}
