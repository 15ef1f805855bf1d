package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/wire"
)

// A server that limits its rate, or has a long answer, sends clients to TCP. There the query is signed again.
func TestAskSignedOverTCP(t *testing.T) {
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "db"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	pub, err := publish.Open(st, publish.Options{})
	if err != nil {
		t.Fatal(err)
	}
	secret := base64.StdEncoding.EncodeToString([]byte("a secret of some length, for all"))
	err = st.Update(func(w store.Writer) error {
		return store.NewEdit(w).PutObject(store.KindTSIGKey, "1", keyRow{Name: "key.test",
			Algorithm: "hmac-sha256", Secret: secret, Scope: "POOL", Resource: uuid.New()})
	})
	if err != nil {
		t.Fatal(err)
	}
	l, pc := listenBoth(t)
	for _, s := range []*dns.Server{{Listener: l}, {PacketConn: pc}} {
		udp := s.PacketConn != nil
		s.TsigSecret = map[string]string{"key.test.": secret}
		s.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
			r := new(dns.Msg).SetReply(q)
			r.Truncated = udp
			if q.IsTsig() != nil && w.TsigStatus() == nil {
				r.SetTsig("key.test.", dns.HmacSHA256, 300, int64(q.IsTsig().TimeSigned))
			}
			w.WriteMsg(r)
		})
		ended := make(chan error)
		go func() { ended <- s.ActivateAndServe() }()
		defer func() { s.Shutdown(); <-ended }()
	}
	r, err := NewKeyring(pub).Ask(t.Context(), Secondary{Remote{AddrPort: l.Addr().(*net.TCPAddr).AddrPort()},
		dnsname.MustParse("key.test.")},
		new(dns.Msg).SetQuestion(apexName, dns.TypeSOA))
	if err != nil || r.Truncated || r.Rcode != dns.RcodeSuccess {
		t.Errorf("%v, %v", r, err)
	}
}

// listenBoth listens on one port of the loopback address with TCP and UDP.
func listenBoth(t *testing.T) (net.Listener, net.PacketConn) {
	t.Helper()
	var last error
	for range 20 { // a port that is free for TCP may be taken for UDP
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		pc, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, pc
		}
		last = err
		_ = l.Close()
	}
	t.Fatal(last)
	return nil, nil
}

// TestAskHostileReply has a server reply to a query for its serial with 64 KiB of records that take a hundred times as
// much memory when they are unpacked. A server can have thousands of such queries at a time.
func TestAskHostileReply(t *testing.T) {
	bomb := soaBomb()
	l, pc := listenBoth(t)
	defer l.Close()
	udp := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		r := new(dns.Msg).SetReply(q)
		r.Truncated = true
		w.WriteMsg(r)
	})}
	ended := make(chan error)
	go func() { ended <- udp.ActivateAndServe() }()
	defer func() { udp.Shutdown(); <-ended }()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn, [][]byte{bomb})
			conn.Close()
		}
	}()
	at := Secondary{Addr: Remote{AddrPort: l.Addr().(*net.TCPAddr).AddrPort()}}
	k := NewKeyring(nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	serial, err := serialAt(t.Context(), k.Ask, at, dnsname.MustParse(apexName))
	runtime.ReadMemStats(&after)
	if err == nil {
		t.Errorf("a reply without SOA record has the serial %d", serial)
	}
	if n, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20); n > most {
		t.Errorf("a reply of %d bytes took %d bytes of memory, more than %d", len(bomb), n, most)
	}
}

// soaBomb returns a reply with as many records as possible, all of them with a name of 255 bytes that takes four times
// as much as text.
func soaBomb() []byte {
	b := []byte{0, 1, 0x84, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for _, n := range []int{63, 63, 63, 61} {
		b = append(b, byte(n))
		b = append(b, bytes.Repeat([]byte{1}, n)...)
	}
	b = append(b, 0, 0, 6, 0, 1)
	n := 0
	for ; len(b)+12 < wire.MaxSize; n++ {
		b = append(b, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0)
	}
	binary.BigEndian.PutUint16(b[6:], uint16(n))
	return b
}
