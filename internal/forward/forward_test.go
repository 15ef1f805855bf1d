package forward_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/wire"
)

func TestAllowed(t *testing.T) {
	prefixes := func(all ...string) (out []netip.Prefix) {
		for _, p := range all {
			out = append(out, netip.MustParsePrefix(p))
		}
		return out
	}
	tests := []struct {
		clients []netip.Prefix
		addr    string
		want    bool
	}{
		{nil, "127.0.0.1", false},
		{nil, "::1", false},
		{prefixes("192.0.2.0/24"), "192.0.2.77", true},
		{prefixes("192.0.2.0/24"), "::ffff:192.0.2.77", true},
		{prefixes("192.0.2.0/24"), "198.51.100.1", false},
		{prefixes("192.0.2.0/24", "2001:db8::/32"), "2001:db8::1", true},
		{prefixes("fe80::/10"), "fe80::1%eth0", true},
	}
	for _, tt := range tests {
		f, _ := start(t, forward.Config{Clients: tt.clients}, silent)
		if got := f.Allowed(netip.MustParseAddr(tt.addr)); got != tt.want {
			t.Errorf("Allowed(%s) with %v = %v, want %v", tt.addr, tt.clients, got, tt.want)
		}
	}
}

// TestSetConfig changes upstreams: the cache is kept, and so is the health of the upstreams that stay.
func TestSetConfig(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, broken, replies(t, 0, address))
		check(t, f, n, positive(0), "192.0.2.1", "192.0.2.2")
		time.Sleep(5 * time.Second)
		gauge(t, f, "192.0.2.1:53", 0)
		n.set(server(3), replies(t, 0, "www.example.org. 300 IN A 192.0.2.3"))
		clients := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
		f.SetConfig(forward.Config{Upstreams: []resolveServer{server(1), server(3)}, Exchanger: n, Clients: clients})
		check(t, f, n, positive(5))
		gauge(t, f, "192.0.2.1:53", 0)
		gauge(t, f, "192.0.2.2:53", -1)
		if got := gather(t, f, "upstream_queries_total", "NOERROR 192.0.2.2:53"); got != -1 {
			t.Errorf("a removed upstream still has %v queries", got)
		}
		if !f.Allowed(netip.MustParseAddr("192.0.2.1")) {
			t.Error("a client of the new configuration is not allowed")
		}
		time.Sleep(295 * time.Second)
		want := positive(0)
		want.Answer = []string{"www.example.org. 300 IN A 192.0.2.3"}
		check(t, f, n, want, "192.0.2.3")

		// Without the upstream that is down, there are no probes.
		f.SetConfig(forward.Config{Upstreams: []resolveServer{server(3)}, Exchanger: n})
		synctest.Wait()
		n.mu.Lock()
		n.asked = nil
		n.mu.Unlock()
		time.Sleep(time.Minute)
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.asked) != 0 {
			t.Errorf("asked %v", n.asked)
		}
	})
}

// TestRepair corrects a configuration with which no upstream could be reached: they are up again.
func TestRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, n := start(t, forward.Config{}, broken)
		check(t, f, n, failed(wire.EDENetworkError), "192.0.2.1")
		time.Sleep(5 * time.Second)
		gauge(t, f, "192.0.2.1:53", 0)
		works := &network{t: t, servers: map[resolveServer]handler{server(1): replies(t, 0, address)}}
		f.SetConfig(forward.Config{Upstreams: []resolveServer{server(1)}, Exchanger: works})
		time.Sleep(2 * time.Second)
		gauge(t, f, "192.0.2.1:53", 1)
		works.history()
		check(t, f, works, positive(0), "192.0.2.1")
	})
}

// TestSmallerCache checks that entries beyond the new size are evicted.
func TestSmallerCache(t *testing.T) {
	f, n := start(t, forward.Config{}, replies(t, 0, "--\n"+soa))
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		ask(t, f, string(c)+".example.org.", dns.TypeA)
	}
	if got := gather(t, f, "cache_entries", ""); got != 26 {
		t.Errorf("%v entries, want 26", got)
	}
	f.SetConfig(forward.Config{Upstreams: []resolveServer{server(1)}, Exchanger: n, CacheSize: 16})
	if got := gather(t, f, "cache_entries", ""); got != 0 {
		t.Errorf("%v entries, want 0", got)
	}
}
