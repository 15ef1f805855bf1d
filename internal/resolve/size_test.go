package resolve_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// TestWithSize checks that the size is that of the packet, which names its owner in full in every record. Packed again,
// the same reply is smaller.
func TestWithSize(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan int, 1)
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		for _, a := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA,
				Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(a)})
		}
		sent <- m.Len()
		_ = w.WriteMsg(m)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	size := 0
	reply, err := new(resolve.Client).Exchange(resolve.WithSize(t.Context(), &size),
		resolve.Server{Transport: resolve.UDP, Addr: netip.MustParseAddrPort(conn.LocalAddr().String())},
		new(dns.Msg).SetQuestion("a.long.name.example.org.", dns.TypeA))
	if err != nil {
		t.Fatal(err)
	}
	reply.Compress = true
	if want := <-sent; size != want || reply.Len() >= size {
		t.Errorf("the size is %d, want %d, more than the %d of a copy", size, want, reply.Len())
	}
}
