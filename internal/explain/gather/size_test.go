package gather_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
)

// family returns n servers for a zone, with IPv4 and IPv6 addresses.
func family(zone, below string, n, net int) (ns, glue string, hosts []iterate.Host) {
	var names []string
	for i := range n {
		h := iterate.Host{Name: dnsname.MustParse(fmt.Sprintf("%c.%s", 'a'+i, below))}
		for _, form := range []string{"198.18.%d.%d", "2001:db8:%d::%d"} {
			h.Glue = append(h.Glue, addr(fmt.Sprintf(form, net, i+1)))
		}
		names = append(names, h.Name.String())
		glue += fmt.Sprintf("%s 172800 A %s\n%s 172800 AAAA %s\n", h.Name, h.Glue[0], h.Name, h.Glue[1])
		hosts = append(hosts, h)
	}
	return fmt.Sprintf("%s 172800 NS %s\n", zone, strings.Join(names, ", ")), glue, hosts
}

func serve(net *simnet.Net, hosts []iterate.Host, script string) {
	for _, h := range hosts {
		for _, a := range h.Glue {
			net.MustServer(a.String(), script)
		}
	}
}

// TestPublicSize checks that a domain with four nameservers in another domain stays within the limits in an internet
// as large as the public one: 13 servers with IPv4 and IPv6 addresses, for the root and for the top-level domain.
func TestPublicSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rootNS, rootGlue, roots := family(".", "root-servers.test.", 13, 1)
		comNS, comGlue, coms := family("com.", "gtld-servers.test.", 13, 2)
		ownNS, _, own := family("example.com.", "ns.hoster.net.", 4, 3)
		hosterNS, hosterGlue, _ := family("hoster.net.", "ns.hoster.net.", 4, 3)
		comNS += strings.Replace(comNS, "com.", "net.", 1)
		net := simnet.New(1)
		serve(net, roots, "zone .\nzone root-servers.test.\n"+rootNS+rootGlue+comNS+comGlue)
		serve(net, coms, "zone com. 900\nzone net. 900\nzone gtld-servers.test.\n"+comNS+comGlue+ownNS+hosterNS+hosterGlue)
		serve(net, own, "zone example.com.\nzone hoster.net.\n"+ownNS+hosterNS+hosterGlue+
			"www.example.com. 300 A 203.0.113.1\nwww.example.com. 300 AAAA 2001:db8::1")
		g := &gather.Gatherer{Exchanger: net, Hints: roots, Anchors: []secure.Anchor{}, Options: gather.Options{Seed: 1},
			Prober: &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket}}
		f := analyze(t, g, "www.example.com")
		asked := map[dnsname.Name]map[netip.Addr]bool{}
		for _, e := range f.Exchanges {
			if asked[e.Zone] == nil {
				asked[e.Zone] = map[netip.Addr]bool{}
			}
			asked[e.Zone][e.Server] = true
		}
		for zone, want := range map[string]int{".": 26, "com.": 26, "example.com.": 8} {
			if got := len(asked[dnsname.MustParse(zone)]); got != want {
				t.Errorf("analyze: %d servers of %s were asked, want %d", got, zone, want)
			}
		}
		if f.Queries > 125 || len(f.Unfinished) > 0 || f.Outcomes[1].Result != iterate.Answer {
			t.Errorf("analyze: %d queries, unfinished %v, %s", f.Queries, f.Unfinished, outcomes(f))
		}
		f, err := g.Scan(t.Context(), "example.com")
		if f = must(t, f, err); f.Queries > 190 || len(f.Unfinished) > 0 {
			t.Errorf("scan: %d queries, unfinished %v", f.Queries, f.Unfinished)
		}
		probed := map[string]bool{}
		for _, s := range f.Servers {
			if s.Zone == f.Zone && s.Recursion.Fact == explain.No {
				probed[s.Host.String()] = true
			}
		}
		if len(probed) != 4 || f.Vantage.IPv4 != explain.Yes || f.Vantage.IPv6 != explain.Yes {
			t.Errorf("probed %v, from %+v", probed, f.Vantage)
		}
	})
}
