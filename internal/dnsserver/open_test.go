package dnsserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// testTLS returns the configuration of a TLS server with a new certificate.
func testTLS(tb testing.TB, protocols ...string) *tls.Config {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos: protocols}
}

func TestTLS(t *testing.T) {
	s := listening(t, Config{TLS: []string{"127.0.0.1:0"}, TLSConfig: testTLS(t, "dot")})
	s.timeouts.read = 200 * time.Millisecond
	run(t, s)
	addr := s.Bound().TLS[0]
	half := dialTCP(t, addr)
	if _, err := half.Write([]byte{22, 3, 1}); err != nil {
		t.Fatal(err)
	}
	c := tls.Client(dialTCP(t, addr), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"dot"}})
	for range 3 {
		writeFramed(t, c, packed(t, question("www.example.org.", dns.TypeA)))
		if m := readFramed(t, c); len(m.Answer) != 1 {
			t.Errorf("the reply is %v", m)
		}
	}
	closed(t, half) // a client that does not end its handshake
	plain := dialTCP(t, addr)
	writeFramed(t, plain, packed(t, question("www.example.org.", dns.TypeA)))
	closedAfterAlert(t, plain)
	if n := s.tcp[len(s.tcp)-1].count[0].dropped[dropTLS].Load(); n != 2 {
		t.Errorf("%d failed handshakes are counted, want 2", n)
	}
}

// closedAfterAlert fails the test unless the server closes the connection after at most one TLS alert.
func closedAfterAlert(t *testing.T, c interface{ Read([]byte) (int, error) }) {
	t.Helper()
	alert := make([]byte, 7)
	if n, err := c.Read(alert); err == nil && alert[0] != 21 {
		t.Errorf("read %x", alert[:n])
	}
	if n, err := c.Read(alert); err == nil {
		t.Errorf("the connection is open: read %d bytes", n)
	}
}

// TestPadding checks the sizes of padded replies.
func TestPadding(t *testing.T) {
	h := newHandler(t, Config{NSID: "ns1"})
	padding := &dns.EDNS0_PADDING{Padding: make([]byte, 8)}
	secure := client{addr: stranger.addr, tcp: true, encrypted: &Encryption{}}
	for _, tt := range []struct {
		name   string
		query  *dns.Msg
		from   client
		padded bool
	}{
		{"encrypted", withOPT(question("www.example.org.", dns.TypeA), 1232, padding), secure, true},
		{"encrypted, large", withOPT(question("huge.example.org.", dns.TypeTXT), 1232, padding), secure, true},
		{"encrypted, an error", withOPT(question("example.net.", dns.TypeA), 1232, padding), secure, true},
		{"encrypted, with NSID", withOPT(question("www.example.org.", dns.TypeA), 1232, padding,
			&dns.EDNS0_NSID{Code: dns.EDNS0NSID}), secure, true},
		{"encrypted, not padded", withOPT(question("www.example.org.", dns.TypeA), 1232), secure, false},
		{"encrypted, without EDNS", question("www.example.org.", dns.TypeA), secure, false},
		{"UDP", withOPT(question("www.example.org.", dns.TypeA), 1232, padding), stranger, false},
		{"TCP", withOPT(question("www.example.org.", dns.TypeA), 1232, padding),
			client{addr: stranger.addr, tcp: true}, false},
	} {
		out := make([]byte, writeBuffer)
		n := h.answer(packed(t, tt.query), out, tt.from)
		if padded := n%wire.PaddedSize == 0; padded != tt.padded {
			t.Errorf("%s: %d bytes", tt.name, n)
		}
		unpacked(t, out[:n])
	}
}
