package transfer

import (
	"encoding/base64"
	"net"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
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
		return store.NewEdit(w).PutObject(store.KindTSIGKey, "1", keyRow{"key.test", "hmac-sha256", secret, "POOL",
			uuid.New()})
	})
	if err != nil {
		t.Fatal(err)
	}
	var l net.Listener
	var pc net.PacketConn
	for range 20 { // a port that is free for TCP may be taken for UDP
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		if pc, err = net.ListenPacket("udp", l.Addr().String()); err == nil {
			break
		}
		_ = l.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
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
	r, err := NewKeyring(pub).Ask(t.Context(), Secondary{l.Addr().(*net.TCPAddr).AddrPort(),
		dnsname.MustParse("key.test.")},
		new(dns.Msg).SetQuestion(apexName, dns.TypeSOA))
	if err != nil || r.Truncated || r.IsTsig() == nil {
		t.Errorf("%v, %v", r, err)
	}
}
