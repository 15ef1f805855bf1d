package main

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/resolve"
)

// TestServeAsksNoPrivateAddresses sees that whoever chooses the glue of a zone cannot make the server send anything into its own
// network: neither by queries, nor by probes, which have sockets of their own.
func TestServeAsksNoPrivateAddresses(t *testing.T) {
	for _, allow := range []bool{false, true} {
		inside, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer inside.Close()
		at := inside.LocalAddr().(*net.UDPAddr).AddrPort()
		d := &daemon{}
		d.cfg.Explain.AllowPrivate = allow
		g := d.gatherer(&resolvers.List{})
		g.Prober.Port, g.Prober.Timeout = at.Port(), time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		g.Prober.Probe(ctx, dnsname.MustParse("example.org"), netip.MustParseAddr("127.0.0.1"), resolve.ProbeKinds)
		_, _ = g.Exchanger.Exchange(ctx, resolve.Server{Addr: at}, new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA))
		cancel()
		if got := first(t, inside); (got == "end") == allow {
			t.Errorf("private addresses allowed: %v; what came first: %q", allow, got)
		}
	}
}

// first is what came first to a socket; "end" if there was nothing before.
func first(t *testing.T, conn net.PacketConn) string {
	t.Helper()
	if _, err := conn.WriteTo([]byte("end"), conn.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 512)
	n, _, err := conn.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}
