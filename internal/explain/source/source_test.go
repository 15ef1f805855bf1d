package source

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
)

// TestAsksNoPrivateAddresses checks that the glue of a stranger's zone cannot make a server send into its own network,
// neither by queries nor by probes, which have their own sockets.
func TestAsksNoPrivateAddresses(t *testing.T) {
	for _, allow := range []bool{false, true} {
		inside, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer inside.Close()
		at := inside.LocalAddr().(*net.UDPAddr).AddrPort()
		g, _, err := Open(Config{PublicOnly: !allow})
		if err != nil {
			t.Fatal(err)
		}
		g.Prober.Port, g.Prober.Timeout = at.Port(), time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		g.Prober.Probe(ctx, dnsname.MustParse("example.org"), netip.MustParseAddr("127.0.0.1"), probe.Kinds)
		_, _ = g.Exchanger.Exchange(ctx, resolve.Server{Addr: at}, new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA))
		cancel()
		if got := first(t, inside); (got == "end") == allow {
			t.Errorf("private addresses allowed: %v; what came first: %q", allow, got)
		}
	}
}

// TestConnectsToPublicAddresses checks where a service may be connected to: never to private addresses, and for clients
// of a server only at the ports of web servers.
func TestConnectsToPublicAddresses(t *testing.T) {
	connected := func(context.Context, string, string) (net.Conn, error) { return nil, nil }
	for _, tt := range []struct {
		address string
		public  bool
		want    bool
	}{
		{"93.184.10.1:443", false, true},
		{"93.184.10.1:22", false, true},
		{"127.0.0.1:443", false, false},
		{"[::ffff:169.254.169.254]:80", false, false},
		{"93.184.10.1:443", true, true},
		{"93.184.10.1:22", true, false},
		{"10.0.0.1:443", true, false},
	} {
		g, _, err := openPublic(Config{PublicOnly: tt.public}, connected, listen)
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.Connect(t.Context(), "tcp", tt.address)
		if errors.Is(err, gather.ErrNotAllowed) == tt.want {
			t.Errorf("%s, for clients of a server: %v: %v", tt.address, tt.public, err)
		}
	}
}

// TestAsksUnusedAddress checks that the gatherer asks the unused address for middleboxes, and sends nothing else there.
func TestAsksUnusedAddress(t *testing.T) {
	var opened []string
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		opened = append(opened, network+" "+address)
		return nil, errors.New("the test opens nothing")
	}
	listen := func(context.Context, string) (net.PacketConn, error) {
		return nil, errors.New("the test opens nothing")
	}
	g, _, err := openPublic(Config{PublicOnly: true}, dial, listen)
	if err != nil {
		t.Fatal(err)
	}
	if g.Options.Unused != unused {
		t.Errorf("asks %s, want %s", g.Options.Unused, unused)
	}
	at := func(a string) resolve.Server { return resolve.Server{Addr: netip.MustParseAddrPort(a)} }
	query := new(dns.Msg).SetQuestion(".", dns.TypeNS)
	_, _ = g.Exchanger.Exchange(t.Context(), at("192.0.2.53:53"), query) // as if it were glue of a stranger's zone
	for _, other := range []string{"192.0.2.53:80", "192.0.2.54:53", "10.0.0.1:53", "198.41.0.4:53"} {
		_, _ = g.UnusedExchanger.Exchange(t.Context(), at(other), query)
	}
	g.Prober.Probe(t.Context(), dnsname.MustParse("example.org"), unused, probe.Kinds)
	if len(opened) > 0 {
		t.Errorf("opened %q", opened)
	}
	_, _ = g.UnusedExchanger.Exchange(t.Context(), at("192.0.2.53:53"), query)
	if diff := cmp.Diff([]string{"udp 192.0.2.53:53"}, opened); diff != "" {
		t.Error(diff)
	}
}

// TestNAT64 checks that scans and lookups at registries know the prefixes of the operator.
func TestNAT64(t *testing.T) {
	want := specialaddr.Table{NAT64: []netip.Prefix{specialaddrtest.Prefix}}
	g, _, err := Open(Config{Special: want})
	if err != nil {
		t.Fatal(err)
	}
	client := g.Registry.(*registry.Client)
	if !slices.Equal(g.Options.NAT64, want.NAT64) || !slices.Equal(client.Special.NAT64, want.NAT64) ||
		client.Allow != nil {
		t.Errorf("scans have %v, registries %+v", g.Options.NAT64, client.Special)
	}
}

// TestInLab checks that a gatherer of the lab tries no address outside of it.
func TestInLab(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	l, err := lab.Start(ctx, lab.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Wait()
	defer cancel()
	g, _, err := Open(Config{Lab: dir})
	if err != nil {
		t.Fatal(err)
	}
	if g.UnusedExchanger != nil || g.Options.Unused.IsValid() {
		t.Errorf("asks %s", g.Options.Unused)
	}
}

// first returns the first packet of a socket; "end" if there was none before.
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
