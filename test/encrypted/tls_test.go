package encrypted

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestOffByDefault checks that a server without addresses for them has no encrypted listeners.
func TestOffByDefault(t *testing.T) {
	t.Parallel()
	s := server.Start(t, server.Options{})
	text, err := os.ReadFile(s.Data + "/addresses.json")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(text), `"dns":`, `!"tls"`, `!"https"`, `!"quic"`, "!proxy://")
}

// pin returns the hash of a certificate's public key that kdig takes.
func pin(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// TestQueriesOverTLS queries with dig and kdig, which check the certificate by its CA, its name and its key.
func TestQueriesOverTLS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "transfer: {tls_ca: CA}\n")
	other := newAuthority(t)
	own := n.ca.issue(secondaryName)
	foreign := other.issue(secondaryName)
	const answer = "192.0.2.1"
	tests := []struct {
		name, program string
		args          []string
		want          []string
	}{
		{"dig without a check", "dig", []string{"+tls"}, []string{answer, "(TLS)"}},
		{"dig with the CA", "dig", []string{"+tls-ca=" + n.ca.file, "+tls-hostname=" + primaryName}, []string{answer}},
		{"dig with another CA", "dig", []string{"+tls-ca=" + other.file, "+tls-hostname=" + primaryName},
			[]string{"!" + answer}},
		{"dig with another name", "dig", []string{"+tls-ca=" + n.ca.file, "+tls-hostname=ns9.example.org"},
			[]string{"!" + answer}},
		{"kdig without a check", "kdig", []string{"+tls"}, []string{answer, "(TLS1.3)"}},
		{"kdig with a pin", "kdig", []string{"+tls-pin=" + pin(t, n.own.cert)}, []string{answer}},
		{"kdig with a wrong pin", "kdig", []string{"+tls-pin=" + pin(t, foreign.cert)}, []string{"!" + answer}},
		{"kdig with the CA", "kdig", []string{"+tls-ca=" + n.ca.file, "+tls-hostname=" + primaryName}, []string{answer}},
		{"kdig with another CA", "kdig", []string{"+tls-ca=" + other.file, "+tls-hostname=" + primaryName},
			[]string{"!" + answer}},
		{"kdig with another SNI", "kdig", []string{"+tls", "+tls-sni=ns9.example.org"}, []string{answer}},
		{"kdig with a certificate", "kdig", []string{"+tls", "+tls-certfile=" + own.cert, "+tls-keyfile=" + own.key},
			[]string{answer}},
		{"kdig with a certificate of another CA", "kdig",
			[]string{"+tls", "+tls-certfile=" + foreign.cert, "+tls-keyfile=" + foreign.key}, []string{"!" + answer}},
		{"plain TCP", "dig", []string{"+tcp"}, []string{"!" + answer}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, run(tt.program, n.TLS[0], append(tt.args, www, "A")...), tt.want...)
		})
	}
	if got := n.Metric(`nameplane_dns_queries_total{family="ipv4",transport="tls"}`); got < 7 {
		t.Errorf("%v queries over TLS are counted", got)
	}
	if got := n.Metric(`nameplane_dns_dropped_total{reason="tls_handshake"}`); got < 2 {
		t.Errorf("%v failed handshakes are counted", got)
	}
}

// TestPaddingOnlyWhenEncrypted checks that a padded query gets a padded reply over TLS, and over nothing else.
func TestPaddingOnlyWhenEncrypted(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	q := new(dns.Msg).SetQuestion(www, dns.TypeA).SetEdns0(1232, false)
	q.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 20)}}
	for _, tt := range []struct {
		network, addr string
		padded        bool
	}{{"tcp-tls", n.TLS[0], true}, {"tcp", n.DNS[0], false}, {"udp", n.DNS[0], false}} {
		c := dns.Client{Net: tt.network, Timeout: 10 * time.Second, TLSConfig: n.ca.client(pair{})}
		r, _, err := c.Exchange(q, tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		r.Compress = true
		b, err := r.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if padded := len(b)%468 == 0; padded != tt.padded {
			t.Errorf("%s: a reply of %d bytes: %v", tt.network, len(b), r)
		}
	}
	expect(t, run("kdig", n.TLS[0], "+tls", "+padding", www), "PADDING")
	n.createKey(key)
	transfer := []string{"-y", "hmac-sha256:" + key.Name + ":" + key.Secret, "+padding", apex, "AXFR"}
	expect(t, run("kdig", n.TLS[0], append(transfer, "+tls")...), "192.0.2.1", "Received 468 B")
	expect(t, run("kdig", n.DNS[0], transfer...), "192.0.2.1", "!Received 468 B")
}

func (n *node) dial(from string, c *tls.Config) (*tls.Conn, error) {
	d := tls.Dialer{Config: c, NetDialer: &net.Dialer{Timeout: 10 * time.Second,
		LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}}
	conn, err := d.DialContext(n.t.Context(), "tcp", n.TLS[0])
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(server.Patience))
	return conn.(*tls.Conn), nil
}

// TestPipeliningOverTLS sends a thousand queries before it reads the first reply.
func TestPipeliningOverTLS(t *testing.T) {
	t.Parallel()
	n := start(t, "", "")
	conn, err := n.dial("127.0.0.1", n.ca.client(pair{}, "dot"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c := &dns.Conn{Conn: conn}
	const queries = 1000
	go func() {
		for i := range queries {
			q := new(dns.Msg).SetQuestion(www, dns.TypeA)
			q.Id = uint16(i)
			if c.WriteMsg(q) != nil {
				return
			}
		}
	}()
	for i := range queries {
		r, err := c.ReadMsg()
		if err != nil || int(r.Id) != i || len(r.Answer) != 1 {
			t.Fatalf("reply %d: %v %v", i, r, err)
		}
	}
}

// TestClientsThatHoldConnections opens as many connections as one client may have, with half a handshake or without
// reading. Other clients and UDP are served meanwhile.
func TestClientsThatHoldConnections(t *testing.T) {
	t.Parallel()
	const most = 20
	n := start(t, fmt.Sprintf("  tcp: {max_connections: 40, max_per_client: %d}\n", most), "")
	hello := []byte{22, 3, 1, 2, 0, 1, 0, 1, 252} // the first bytes of a ClientHello
	for range most - 1 {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", n.TLS[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(hello); err != nil {
			t.Fatal(err)
		}
	}
	slow, err := n.dial("127.0.0.2", n.ca.client(pair{}, "dot"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	go func() { // it never reads, until the server closes the connection
		q, _ := new(dns.Msg).SetQuestion(apex, dns.TypeANY).Pack()
		all := []byte(strings.Repeat(string([]byte{byte(len(q) >> 8), byte(len(q))})+string(q), 1000))
		for {
			if _, err := slow.Write(all); err != nil {
				return
			}
		}
	}()
	if c, err := n.dial("127.0.0.2", n.ca.client(pair{}, "dot")); err == nil {
		c.Close()
		t.Errorf("a client has more than %d connections", most)
	}
	for range 50 {
		if r := n.Ask(www, dns.TypeA); len(r.Answer) != 1 {
			t.Fatalf("UDP: %v", r)
		}
		c, err := n.dial("127.0.0.3", n.ca.client(pair{}, "dot"))
		if err != nil {
			t.Fatalf("another client: %v", err)
		}
		c.Close()
	}
	if open := n.Metric("nameplane_dns_tcp_connections"); open > 40 {
		t.Errorf("%v connections", open)
	}
}
