package dnsnameresolver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/forward"
	"github.com/miekg/dns"
)

// upstream answers on a loopback socket, from the same table as authority.
func upstream(t *testing.T, a *authority) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	s := &dns.Server{PacketConn: pc, NotifyStartedFunc: sync.OnceFunc(func() { close(started) }),
		Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
			_, _ = a.ServeDNS(t.Context(), w, r)
		})}
	go func() { _ = s.ActivateAndServe() }()
	<-started
	t.Cleanup(func() { _ = s.Shutdown() })
	return pc.LocalAddr().String()
}

// serve starts CoreDNS with a Corefile and returns its address.
func serve(t *testing.T, corefile string) string {
	t.Helper()
	if !slices.Contains(dnsserver.Directives, Name) {
		dnsserver.Directives = slices.Insert(slices.Clone(dnsserver.Directives), slices.Index(dnsserver.Directives, "cache"),
			Name)
	}
	caddy.Quiet, dnsserver.Quiet = true, true
	i, err := caddy.Start(caddy.CaddyfileInput{Contents: []byte(corefile), Filepath: "Corefile", ServerTypeName: "dns"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range i.ShutdownCallbacks() {
			t.Error(err)
		}
		_ = i.Stop()
	})
	return i.Servers()[0].LocalAddr().String()
}

// TestCorefile runs the plugin in a CoreDNS with a Corefile, before `cache` and `forward`. Failures count although
// those plugins report success, and server blocks share the engine.
func TestCorefile(t *testing.T) {
	r := &rig{t: t, api: newAPI(t), authority: newAuthority()}
	up := upstream(t, r.authority)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":%q}}],
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"users":[{"name":"x"}]}`,
		r.api.server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	name := r.api.create("*.example.com.")
	block := fmt.Sprintf("%%s:0 {\n bind 127.0.0.1\n ocp_dnsnameresolver {\n kubeconfig %s\n }\n cache 30\n forward . "+
		"%s {\n max_fails 0\n }\n}\n", kubeconfig, up)
	at := serve(t, fmt.Sprintf(block, ".")+fmt.Sprintf(block, "example.org"))
	ask := func(question string) *dns.Msg {
		t.Helper()
		m := new(dns.Msg)
		m.SetQuestion(question, dns.TypeA)
		c := &dns.Client{Timeout: 20 * time.Second}
		got, _, err := c.Exchange(m, at)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	r.authority.set("a.example.com. A", "a.example.com. 5 A 192.0.2.1")
	ask("a.example.com.")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	r.authority.set("b.example.com. A", "b.example.com. 5 A 192.0.2.2")
	ask("b.example.com.")
	r.want(name, "a.example.com. 192.0.2.1"+ok+"; b.example.com. 192.0.2.2"+ok)
	w, _ := r.api.counts()
	for range 5 { // from the cache
		ask("a.example.com.")
	}
	if again, _ := r.api.counts(); again != w {
		t.Errorf("answers from the cache were written %d times", again-w)
	}
	// The cache keeps its answers for up to five seconds of real time. Other names show failures at once.
	r.api.edit(name, stored("gone.example.com.", "192.0.2.3"))
	eventually(t, "NXDOMAIN to be counted", func() bool {
		return ask("gone.example.com.").Rcode == dns.RcodeNameError &&
			statusTextOf(r.api.get(name), "gone.example.com.") == "gone.example.com. 192.0.2.3 failures=1 Degraded=True/NXDOMAIN"
	})
}
