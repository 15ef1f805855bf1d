package iterate_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

func exchange(t *testing.T, m *dns.Msg) iterate.Exchange {
	t.Helper()
	wire, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return iterate.Exchange{Question: question("www.example.test. A"), Reply: wire}
}

func TestView(t *testing.T) {
	m := message(t, "aa ra NXDOMAIN: wWw.example.test. 60 A 192.0.2.1, WWW.example.test. 61 A 192.0.2.2, / "+
		"example.test."+soaData)
	m.Question[0].Name = "WwW.eXaMpLe.TeSt."
	m.SetEdns0(1400, true)
	m.IsEdns0().Option = []dns.EDNS0{
		&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "6e7331"},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "00112233445566778899aabbccddeeff"},
		&dns.EDNS0_EDE{InfoCode: 3, ExtraText: "old"},
		&dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: 24, SourceScope: 20,
			Address: net.IPv4(203, 0, 113, 0)},
	}
	e := exchange(t, m)
	v, err := e.View()
	if err != nil {
		t.Fatal(err)
	}
	www := dnsname.MustParse("www.example.test.")
	want := iterate.View{Rcode: "NXDOMAIN", RD: true, EDNS: true, NSID: "ns1",
		EDE: []iterate.EDE{{Code: 3, Text: "old"}}, ECS: netip.MustParsePrefix("203.0.112.0/20"), Case: true,
		Size: len(e.Reply),
		Answer: []iterate.Record{{Name: www, Type: rr.TypeA, TTL: 60, Data: "\xc0\x00\x02\x01"},
			{Name: www, Type: rr.TypeA, TTL: 61, Data: "\xc0\x00\x02\x02"}},
		Authority: v.Authority}
	if diff := cmp.Diff(want, v, cmp.Comparer(func(a, b dnsname.Name) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := v.Authority[0].String(), "example.test. 60 SOA ns.test. h.test. 1 2 3 4 5"; got != want {
		t.Errorf("authority is %s, want %s", got, want)
	}
}

func TestViewPlain(t *testing.T) {
	m := message(t, "BADVERS")
	m.SetEdns0(512, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: "00ff"},
		&dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0011223344556677"}}
	v, err := exchange(t, m).View()
	if err != nil || v.Rcode != "BADVERS" || v.Case || v.NSID != "00ff" {
		t.Errorf("view %+v, err %v", v, err)
	}
	if _, err := (iterate.Exchange{}).View(); err == nil {
		t.Error("an exchange without a reply has a view")
	}
}
