package daemon

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/config"
)

// TestForwardingReload checks that private zones are forwarded as soon as the configuration allows it, and that the log
// names settings that need a restart.
func TestForwardingReload(t *testing.T) {
	upstream := &dns.Server{Net: "udp", Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		rec, _ := dns.NewRR(q.Question[0].Name + " 300 IN PTR printer.example.org.")
		r.Answer = append(r.Answer, rec)
		_ = w.WriteMsg(r)
	})}
	var err error
	if upstream.PacketConn, err = net.ListenPacket("udp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go func() { _ = upstream.ActivateAndServe() }()
	t.Cleanup(func() { _ = upstream.Shutdown() })
	next := make(chan config.Config, 1)
	h := openServer(t, func(c *config.Config) {
		c.Forward.Upstreams, c.Forward.Clients = []string{upstream.PacketConn.LocalAddr().String()}, []string{"127.0.0.0/8"}
	})
	h.load = func() (config.Config, error) { return <-next, nil }
	ask := func(want int) {
		t.Helper()
		r, err := dns.Exchange(new(dns.Msg).SetQuestion("1.0.0.10.in-addr.arpa.", dns.TypePTR), h.Endpoints().DNS[0])
		if err != nil || r.Rcode != want {
			t.Errorf("reply is %v (%v), want %s", r, err, dns.RcodeToString[want])
		}
	}
	ask(dns.RcodeNameError)
	c := h.cfg
	c.Forward.AskPrivate, c.DNS.UDPSize = true, 4096
	next <- c
	h.Reload()
	ask(dns.RcodeSuccess)
	if want := "settings=dns.udp_size"; !strings.Contains(h.log.String(), want) {
		t.Errorf("the log does not say %q:\n%s", want, h.log)
	}
}
