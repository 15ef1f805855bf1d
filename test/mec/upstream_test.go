package mec

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// upstreamZone returns the zone that stands for the internet in this test.
func upstreamZone(t *testing.T) peers.Zone {
	t.Helper()
	text := `$ORIGIN example.net.
$TTL 300
@	SOA	ns hostmaster 1 3600 600 86400 77
	NS	ns
ns	A	192.0.2.53
www	A	192.0.2.80
alias	CNAME	www
`
	for i := range 120 {
		text += fmt.Sprintf("many\tA\t198.51.100.%d\n", i+1)
	}
	file := filepath.Join(t.TempDir(), "example.net.zone")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return peers.Zone{Name: "example.net.", File: file}
}

// TestUpstream forwards to an Unbound: the server answers names of rules itself, and Unbound all others.
func TestUpstream(t *testing.T) {
	up := peers.Start(t, peers.Unbound(), []peers.Zone{upstreamZone(t)}, peers.Options{})
	s := start(t, "", settings+"forward: {upstreams: ['"+up.Addr+"'], clients: [127.0.0.0/8], max_stale: 0s}\n")
	ask := func(name string, typ uint16) *dns.Msg {
		t.Helper()
		c := dns.Client{Timeout: 5 * time.Second, UDPSize: 1232}
		r, _, err := c.Exchange(new(dns.Msg).SetQuestion(name, typ).SetEdns0(1232, false), s.DNS[0])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	s.says("www.example.net A", "192.0.2.80/300")
	s.want(201, "POST "+s.MEP+"/mep/config/app1/dns_rules", rule("r", "www.example.net", "203.0.113.1", ""))
	s.says("www.example.net A", "203.0.113.1/30")
	s.says("www.example.net AAAA", "NODATA")
	if r := ask("alias.example.net.", dns.TypeA); len(r.Answer) != 2 {
		t.Errorf("alias.example.net. A: %v", r)
	}
	s.want(200, "PUT "+s.MEP+"/mep/config/app1/dns_rules/r", `{"state":"INACTIVE"}`)
	if got := s.answer("www.example.net", dns.TypeA); !strings.HasPrefix(got, "192.0.2.80/") {
		t.Errorf("after the rule was deactivated: %s", got)
	}

	none := ask("none.example.net.", dns.TypeA)
	if none.Rcode != dns.RcodeNameError || len(none.Ns) != 1 || none.Ns[0].Header().Rrtype != dns.TypeSOA ||
		none.Ns[0].(*dns.SOA).Minttl != 77 {
		t.Errorf("a name that is not there: %v", none)
	}
	many := ask("many.example.net.", dns.TypeA)
	if !many.Truncated || many.Len() > 1232 {
		t.Errorf("a large answer over UDP has %d bytes, truncated %v", many.Len(), many.Truncated)
	}
	tcp := dns.Client{Net: "tcp", Timeout: 5 * time.Second}
	whole, _, err := tcp.Exchange(new(dns.Msg).SetQuestion("many.example.net.", dns.TypeA), s.DNS[0])
	if err != nil || len(whole.Answer) != 120 {
		t.Errorf("a large answer over TCP: %v, %v", whole, err)
	}

	up.Process.Stop()
	began := time.Now()
	dead := ask("gone.example.net.", dns.TypeA)
	if took := time.Since(began); dead.Rcode != dns.RcodeServerFailure || took > 5*time.Second {
		t.Errorf("a dead upstream: %v after %v", dead, took)
	}
	if code := extended(dead); code != dns.ExtendedErrorCodeNetworkError &&
		code != dns.ExtendedErrorCodeNoReachableAuthority {
		t.Errorf("a dead upstream has the extended error %d", code)
	}
	s.want(200, "PUT "+s.MEP+"/mep/config/app1/dns_rules/r", `{"state":"ACTIVE"}`)
	s.says("www.example.net A", "203.0.113.1/30")
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	if err := up.WaitFor(t.Context(), "example.net."); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(server.Patience); s.answer("ns.example.net", dns.TypeA) != "192.0.2.53/300"; {
		if time.Now().After(end) {
			t.Fatal("the upstream is back, and is not asked")
		}
	}
}

// extended returns the code of the extended DNS error of a reply, or 0.
func extended(m *dns.Msg) uint16 {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return e.InfoCode
			}
		}
	}
	return 0
}
