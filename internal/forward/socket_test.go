package forward_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/wire"
)

// sockets binds UDP and TCP to one port of the loopback interface. The system chooses a free TCP port; it may take some
// tries until the same port is free for UDP too.
func sockets(t *testing.T) (net.PacketConn, net.Listener, resolve.Server) {
	t.Helper()
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if p, err := net.ListenPacket("udp", l.Addr().String()); err == nil {
			return p, l, resolve.Server{Addr: l.Addr().(*net.TCPAddr).AddrPort()}
		}
		l.Close()
	}
	t.Fatal("no port is free for UDP and TCP")
	return nil, nil, resolve.Server{}
}

// serve runs a server of miekg/dns on the sockets.
func serve(t *testing.T, p net.PacketConn, l net.Listener, h dns.HandlerFunc) {
	t.Helper()
	for _, s := range []*dns.Server{{PacketConn: p, Handler: h}, {Listener: l, Handler: h}} {
		started, done := make(chan bool), make(chan bool)
		s.NotifyStartedFunc = func() { close(started) }
		go func() {
			defer close(done)
			s.ActivateAndServe()
		}()
		<-started
		t.Cleanup(func() {
			s.Shutdown()
			<-done
		})
	}
}

// upstream is a resolver that knows some names, and can be silenced.
type upstream struct {
	t    *testing.T
	mute atomic.Bool
}

func (u *upstream) serve(w dns.ResponseWriter, q *dns.Msg) {
	if u.mute.Load() {
		return
	}
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	m := new(dns.Msg).SetReply(q)
	m.RecursionAvailable = true
	switch q.Question[0].Name {
	case "www.example.org.":
		m.Answer = []dns.RR{record(u.t, address)}
	case "large.example.org.":
		if m.Truncated = udp; udp {
			break
		}
		for range 40 {
			m.Answer = append(m.Answer, record(u.t, "large.example.org. 300 IN TXT "+strings.Repeat("x", 200)))
		}
	case "failing.example.org.":
		m.Rcode = dns.RcodeServerFailure
	default:
		m.Rcode = dns.RcodeNameError
		m.Ns = []dns.RR{record(u.t, soa)}
	}
	w.WriteMsg(m)
}

func TestSockets(t *testing.T) {
	deadUDP, deadTCP, dead := sockets(t)
	deadUDP.Close()
	deadTCP.Close()
	p, l, alive := sockets(t)
	u := &upstream{t: t}
	serve(t, p, l, u.serve)
	f := run(t, forward.Config{Upstreams: []resolve.Server{dead, alive}})
	if diff := cmp.Diff(positive(0), ask(t, f, "www.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := answer{Rcode: "NXDOMAIN", EDE: wire.EDENone, Authority: []string{soa300}}
	if diff := cmp.Diff(want, ask(t, f, "none.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	q := forward.Question{Name: wireName(t, "large.example.org."), Type: 16}
	msg := message(q, 65535)
	if got := read(t, msg, f.Exchange(t.Context(), q, msg)); len(got.Answer) != 40 {
		t.Errorf("large.example.org. has %d records, want 40", len(got.Answer))
	}
	if got := ask(t, f, "failing.example.org.", dns.TypeA); got.Rcode != "SERVFAIL" || got.EDE != wire.EDENetworkError {
		t.Errorf("failing.example.org.: %+v", got)
	}
	u.mute.Store(true)
	if got := ask(t, f, "silent.example.org.", dns.TypeA); got.Rcode != "SERVFAIL" || got.EDE == wire.EDENone {
		t.Errorf("silent.example.org.: %+v", got)
	}
}

func TestSocketsTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"dns.example.org"}, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	p, l, s := sockets(t)
	certs := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	serve(t, p, tls.NewListener(l, &tls.Config{Certificates: certs}), (&upstream{t: t}).serve)
	s.Transport, s.Name = resolve.TLS, "dns.example.org"
	f := run(t, forward.Config{Upstreams: []resolve.Server{s}, Roots: roots})
	if diff := cmp.Diff(positive(0), ask(t, f, "www.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Without trusted roots the cache still answers, but other questions fail.
	f.SetConfig(forward.Config{Upstreams: []resolve.Server{s}, Roots: x509.NewCertPool()})
	if got := ask(t, f, "www.example.org.", dns.TypeA); got.Rcode != "NOERROR" {
		t.Errorf("after the reload: %+v", got)
	}
	if diff := cmp.Diff(failed(wire.EDENetworkError), ask(t, f, "www2.example.org.", dns.TypeA)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestForgery has a server on the path that replies first, for another question and with the wrong ID.
func TestForgery(t *testing.T) {
	p, l, s := sockets(t)
	serve(t, p, l, func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Answer = []dns.RR{record(t, "www.example.org. 300 IN A 192.0.2.66")}
		m.Id++
		w.WriteMsg(m)
		m.Id--
		m.Question = []dns.Question{{Name: "bank.example.", Qtype: dns.TypeA, Qclass: dns.ClassINET}}
		w.WriteMsg(m)
		(&upstream{t: t}).serve(w, q)
	})
	f := run(t, forward.Config{Upstreams: []resolve.Server{s}})
	got := ask(t, f, "www.example.org.", dns.TypeA)
	if got.Rcode == "SERVFAIL" || strings.Contains(strings.Join(got.Answer, ""), "192.0.2.66") {
		t.Errorf("%+v", got)
	}
}

// TestReload swaps configurations while questions arrive.
func TestReload(t *testing.T) {
	p, l, s := sockets(t)
	serve(t, p, l, (&upstream{t: t}).serve)
	f := run(t, forward.Config{Upstreams: []resolve.Server{s}})
	ctx, cancel := context.WithCancel(t.Context())
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for size := 1 << 20; ctx.Err() == nil; size++ {
			f.SetConfig(forward.Config{Upstreams: []resolve.Server{s}, CacheSize: size})
		}
	})
	for i := range 50 {
		if got := ask(t, f, strings.Repeat("n", i+1)+".example.org.", dns.TypeA); got.Rcode != "NXDOMAIN" {
			t.Errorf("question %d: %+v", i, got)
		}
	}
	cancel()
	swaps.Wait()
}
