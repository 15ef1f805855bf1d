package encrypted

import (
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestProxyAddresses queries through kdig as a proxy. The address in the PROXY header decides about permissions, and is
// in the log.
func TestProxyAddresses(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer: {allow: [198.51.100.7, '2001:db8::7']}\n")
	for _, tt := range []struct {
		name, addr, proxy string
		args              []string
		want              []string
	}{
		{"UDP from IPv4", n.DNS[1], "198.51.100.7-192.0.2.53", []string{www}, []string{"192.0.2.1"}},
		{"UDP from IPv6", n.DNS[1], "2001:db8::7-2001:db8::53", []string{www}, []string{"192.0.2.1"}},
		{"TCP from IPv4", n.DNS[1], "198.51.100.7-192.0.2.53", []string{"+tcp", www}, []string{"192.0.2.1"}},
		{"a transfer from IPv4", n.DNS[1], "198.51.100.7-192.0.2.53", []string{apex, "AXFR"}, []string{"192.0.2.1"}},
		{"a transfer from IPv6", n.DNS[1], "2001:db8::7-2001:db8::53", []string{apex, "AXFR"}, []string{"192.0.2.1"}},
		{"a transfer from another address", n.DNS[1], "198.51.100.8-192.0.2.53", []string{apex, "AXFR"},
			[]string{"REFUSED", "!192.0.2.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, run("kdig", tt.addr, append([]string{"+proxy=" + tt.proxy}, tt.args...)...), tt.want...)
		})
	}
	for client, want := range map[string]bool{"198.51.100.7": true, "198.51.100.8": false} { // kdig cannot
		tr := &dns.Transfer{Conn: n.dialProxied(client)}
		parts, err := tr.In(new(dns.Msg).SetAxfr(apex), "")
		if err != nil {
			t.Fatal(err)
		}
		for p := range parts {
			if (p.Error == nil) != want {
				t.Errorf("a transfer over TLS from %s: %v", client, p.Error)
			}
		}
	}
	expect(t, n.Log(), "peer=198.51.100.7", `peer="198.51.100.7 over TLS 1.3"`, "peer=2001:db8::7")
}

// dialProxied opens a connection over TLS for a client behind a proxy.
func (n *node) dialProxied(client string) *dns.Conn {
	n.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(n.TLS[1], "proxy://"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(server.Patience))
	if _, err := conn.Write(header(netip.MustParseAddr(client))); err != nil {
		n.t.Fatal(err)
	}
	return &dns.Conn{Conn: tls.Client(conn, n.ca.client(pair{}, "dot"))}
}

// TestProxyHeaderIsRequired checks that a listener for proxies drops queries without a header, and queries of senders
// that are not proxies, and that other listeners do not accept a header.
func TestProxyHeaderIsRequired(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	dropped := func() float64 { return n.Metric(`nameplane_dns_dropped_total{reason="proxy_header"}`) }
	before := dropped()
	expect(t, run("kdig", n.DNS[1], www), "!192.0.2.1")
	expect(t, run("kdig", n.DNS[1], "+tcp", www), "!192.0.2.1")
	expect(t, run("kdig", n.TLS[1], "+tls", www), "!192.0.2.1")
	expect(t, run("kdig", n.DNS[1], "-b", "127.0.0.2", "+proxy=198.51.100.7-192.0.2.53", www), "!192.0.2.1")
	expect(t, run("kdig", n.DNS[1], "-b", "127.0.0.2", "+tcp", "+proxy=198.51.100.7-192.0.2.53", www), "!192.0.2.1")
	if got := dropped() - before; got != 5 {
		t.Errorf("%v dropped messages are counted, want 5", got)
	}
	expect(t, run("kdig", n.DNS[0], "+proxy=198.51.100.7-192.0.2.53", www), "!192.0.2.1")
	expect(t, run("kdig", n.DNS[0], www), "192.0.2.1")
}

// header returns a PROXY header for a client; without an address, that of the proxy's own connection.
func header(client netip.Addr) []byte {
	b := []byte("\r\n\r\n\x00\r\nQUIT\n")
	if !client.IsValid() {
		return append(b, 0x20, 0, 0, 0)
	}
	family, length := byte(0x12), uint16(12)
	if client.Is6() {
		family, length = 0x22, 36
	}
	b = binary.BigEndian.AppendUint16(append(b, 0x21, family), length)
	b = append(append(b, client.AsSlice()...), client.AsSlice()...)
	return append(b, 0, 1, 0, 53)
}

// TestProxyRateLimit checks that the rate limit counts the client in the header: loopback, from which the proxy sends,
// is never limited.
func TestProxyRateLimit(t *testing.T) {
	t.Parallel()
	n := start(t, "  rrl: {responses: 5}\n", "")
	conn, err := net.Dial("udp", strings.TrimPrefix(n.DNS[1], "proxy://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q, err := new(dns.Msg).SetQuestion(www, dns.TypeA).Pack()
	if err != nil {
		t.Fatal(err)
	}
	limited := func() float64 { return n.Metric("nameplane_dns_rate_limited_total") }
	for range 50 {
		if _, err := conn.Write(append(header(netip.Addr{}), q...)); err != nil {
			t.Fatal(err)
		}
	}
	server.Eventually(t, "the proxy's own queries", func() bool {
		return n.Metric(`nameplane_dns_queries_total{family="ipv4",transport="udp"}`) >= 50
	})
	if got := limited(); got != 0 {
		t.Errorf("%v replies to the proxy itself are limited", got)
	}
	for range 50 {
		if _, err := conn.Write(append(header(netip.MustParseAddr("198.51.100.7")), q...)); err != nil {
			t.Fatal(err)
		}
	}
	server.Eventually(t, "limited replies", func() bool { return limited() > 10 })
}

// TestProxyConnectionLimit checks that connections through a proxy count for the client in their header.
func TestProxyConnectionLimit(t *testing.T) {
	t.Parallel()
	n := start(t, "  tcp: {max_per_client: 3}\n", "")
	ask := func(client string) error {
		c := n.dialProxied(client)
		if err := c.WriteMsg(new(dns.Msg).SetQuestion(www, dns.TypeA)); err != nil {
			return err
		}
		_, err := c.ReadMsg()
		return err
	}
	for i := range 8 {
		if err := ask(fmt.Sprintf("198.51.100.%d", i)); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
	}
	for i := range 4 {
		if err := ask("2001:db8::1"); (err == nil) != (i < 3) {
			t.Errorf("connection %d of one client: %v", i, err)
		}
	}
}

// dnsdist starts a dnsdist that sends its queries with PROXY headers to the server.
func dnsdist(t *testing.T, n *node) string {
	t.Helper()
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	conf := filepath.Join(dir, "dnsdist.conf")
	text := fmt.Sprintf("setLocal(%q)\nsetSecurityPollSuffix('')\nnewServer({address=%q, useProxyProtocol=true})\n", addr,
		strings.TrimPrefix(n.DNS[1], "proxy://"))
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &server.Process{Name: "dnsdist", LogFile: filepath.Join(dir, "log"),
		Command: []string{"dnsdist", "--supervised", "--disable-syslog", "-C", conf}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Log(p.LogTail())
		}
	})
	server.Eventually(t, "dnsdist answers", func() bool {
		r, err := server.Ask(addr, www, dns.TypeA)
		return err == nil && len(r.Answer) == 1
	})
	return addr
}

// TestUpdateThroughDNSDist sends signed updates through dnsdist. The signatures are valid, and the server knows the
// client behind dnsdist.
func TestUpdateThroughDNSDist(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer: {allow: [127.0.0.9]}\n")
	n.createKey(key)
	addr := dnsdist(t, n)
	host, port, _ := net.SplitHostPort(addr)
	for i, args := range [][]string{{}, {"-v"}} {
		cmd := exec.Command("nsupdate", append(args, "-t", "10", "-y", "hmac-sha256:"+key.Name+":"+key.Secret)...)
		cmd.Stdin = strings.NewReader(fmt.Sprintf("server %s %s\nlocal 127.0.0.9\nzone %s\n"+
			"update add u%d.%s 60 A 192.0.2.9\nsend\n", host, port, apex, i, apex))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nsupdate %v: %v\n%s", args, err, out)
		}
		if r := n.Ask(fmt.Sprintf("u%d.%s", i, apex), dns.TypeA); len(r.Answer) != 1 {
			t.Errorf("nsupdate %v: the record is not there: %v", args, r)
		}
	}
	expect(t, run("dig", addr, "-b", "127.0.0.9", apex, "AXFR"), "192.0.2.1", "!failed")
	expect(t, run("dig", addr, "-b", "127.0.0.8", apex, "AXFR"), "Transfer failed")
}
