package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/simnet"
)

// Addresses of the namespace. Those of DNS servers and of the gateway are public ones, because the program does not
// connect to others. An EndpointSlice refuses loopback addresses, so the backend has a private one.
const (
	gateway4, gateway6 = "93.184.9.1", "2606:2800:9::1"
	backend            = "10.99.0.1"
	root4, root6       = "198.41.0.4", "2001:503:ba3e::2:30"
)

// dnsServers are the servers of the internet: their addresses, and their zones.
var dnsServers = []struct{ addrs, zones string }{
	{root4 + " " + root6, `zone .
. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
. 60 NS a.root.
a.root. 60 A 198.41.0.4
a.root. 60 AAAA 2001:503:ba3e::2:30
com. 60 NS a.gtld.net.
net. 60 NS a.gtld.net.
a.gtld.net. 60 A 192.5.6.30
a.gtld.net. 60 AAAA 2001:503:a83e::2:30
`},
	{"192.5.6.30 2001:503:a83e::2:30", `zone com.
com. 60 SOA a.gtld.net. hostmaster.gtld.net. 1 7200 3600 1209600 900
com. 60 NS a.gtld.net.
example.com. 3600 NS ns1.example.net., ns2.example.net.
zone net.
net. 60 SOA a.gtld.net. hostmaster.gtld.net. 1 7200 3600 1209600 900
net. 60 NS a.gtld.net.
a.gtld.net. 60 A 192.5.6.30
a.gtld.net. 60 AAAA 2001:503:a83e::2:30
example.net. 3600 NS ns1.example.net., ns2.example.net.
ns1.example.net. 3600 A 93.184.1.1
ns1.example.net. 3600 AAAA 2606:2800:1::1
ns2.example.net. 3600 A 23.192.1.1
ns2.example.net. 3600 AAAA 2600:1400:1::1
`},
	{"93.184.1.1 2606:2800:1::1 23.192.1.1 2600:1400:1::1", `zone example.com.
example.com. 3600 SOA ns1.example.net. hostmaster.example.com. 2026010101 7200 3600 1209600 300
example.com. 3600 NS ns1.example.net., ns2.example.net.
app.example.com. 300 CNAME edge.example.net.
other.example.com. 300 CNAME edge.example.net.
zone example.net.
example.net. 3600 SOA ns1.example.net. hostmaster.example.net. 7 7200 3600 1209600 300
example.net. 3600 NS ns1.example.net., ns2.example.net.
ns1.example.net. 3600 A 93.184.1.1
ns1.example.net. 3600 AAAA 2606:2800:1::1
ns2.example.net. 3600 A 23.192.1.1
ns2.example.net. 3600 AAAA 2600:1400:1::1
edge.example.net. 60 A ` + gateway4 + `
edge.example.net. 60 AAAA ` + gateway6 + "\n"},
}

// startDNS adds the addresses to the loopback interface of the namespace, and serves DNS at them. There are no routes,
// so no packet can leave.
func startDNS(t *testing.T) {
	t.Helper()
	network := simnet.New(1)
	addrs := []string{gateway4, gateway6, backend}
	for _, s := range dnsServers {
		for _, a := range strings.Fields(s.addrs) {
			addrs = append(addrs, a)
			network.MustServer(a, s.zones)
		}
	}
	batch := "link set lo up\n"
	for _, a := range addrs {
		addr := netip.MustParseAddr(a)
		batch += fmt.Sprintf("address add %s/%d dev lo", addr, addr.BitLen())
		if addr.Is6() {
			batch += " nodad" // the address can be used at once
		}
		batch += "\n"
	}
	cmd := exec.CommandContext(t.Context(), "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip: %v\n%s", err, out)
	}
	sockets, err := network.ListenPublic()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sockets.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// startBackend serves a page, and returns its port.
func startBackend(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(backend, "0"))
	if err != nil {
		t.Fatal(err)
	}
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "the shop") }
	s := &http.Server{Handler: http.HandlerFunc(page)} //nolint:gosec // only Traefik connects
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
