package simnet_test

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
)

const signedZone = `
	zone test.
	test. 300 SOA ns.test. host.test. 1 2 2 2 60
	test. 300 NS ns.test.
	ns.test. 300 A 192.0.2.53
	*.wild.test. 300 A 203.0.113.1
	www.test. 300 CNAME ns.test.
	plain.test. 300 NS ns.plain.test.
	ns.plain.test. 300 A 192.0.2.54
	secure.test. 300 NS ns.secure.test.
	ds secure.test. 300
`

func TestSign(t *testing.T) {
	const nsecApex = "/ test. 60 NSEC ns.test. NS SOA RRSIG NSEC DNSKEY, / test. 60 RRSIG NSEC 1"
	tests := []struct{ name, typ, want string }{
		{"ns.test.", "A", "NOERROR+aa, ns.test. 300 A 192.0.2.53, ns.test. 300 RRSIG A 2"},
		{"www.test.", "A", "NOERROR+aa, www.test. 300 CNAME ns.test., www.test. 300 RRSIG CNAME 2, " +
			"ns.test. 300 A 192.0.2.53, ns.test. 300 RRSIG A 2"},
		{"a.wild.test.", "A", "NOERROR+aa, a.wild.test. 300 A 203.0.113.1, a.wild.test. 300 RRSIG A 2, " +
			"/ *.wild.test. 60 NSEC www.test. A RRSIG NSEC, / *.wild.test. 60 RRSIG NSEC 2"},
		{"ns.test.", "TXT",
			"NOERROR+aa, / test. 60 SOA 1, / test. 60 RRSIG SOA 1, / ns.test. 60 NSEC plain.test. A RRSIG NSEC, " +
				"/ ns.test. 60 RRSIG NSEC 2"},
		{"no.test.", "A", "NXDOMAIN+aa, / test. 60 SOA 1, / test. 60 RRSIG SOA 1, " + nsecApex},
		{"wild.test.", "A",
			"NOERROR+aa, / test. 60 SOA 1, / test. 60 RRSIG SOA 1, / secure.test. 60 NSEC *.wild.test. NS DS RRSIG NSEC, " +
				"/ secure.test. 60 RRSIG NSEC 2"},
		{"www.plain.test.", "A",
			"NOERROR, / plain.test. 300 NS ns.plain.test., / plain.test. 60 NSEC secure.test. NS RRSIG NSEC, " +
				"/ plain.test. 60 RRSIG NSEC 2"},
		{"plain.test.", "DS",
			"NOERROR+aa, / test. 60 SOA 1, / test. 60 RRSIG SOA 1, / plain.test. 60 NSEC secure.test. NS RRSIG NSEC, " +
				"/ plain.test. 60 RRSIG NSEC 2"},
	}
	for _, tt := range tests {
		t.Run(tt.name+tt.typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer(authority, signedZone+"sign test.")
				if got := askWith(t, net, authority, queryOptions{do: true}, tt.name, tt.typ); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			})
		})
	}
}

// fetch queries records with signatures.
func fetch(t *testing.T, net *simnet.Net, name, typ string) *dns.Msg {
	t.Helper()
	server := resolve.Server{Addr: netip.MustParseAddrPort(authority + ":53")}
	m, err := net.Exchange(t.Context(), server, queryOptions{do: true}.query(name, typ))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestSignatures checks that valid signatures verify, that the requested faults exist, and that the DS record of the
// parent matches the key.
func TestSignatures(t *testing.T) {
	tests := []struct {
		how          string
		valid, fresh bool
		anchored     bool
	}{
		{"", true, true, true},
		{"expired", true, false, true},
		{"early", true, false, true},
		{"broken", false, true, true},
		{"key=other", true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer(authority, signedZone+"sign test. "+tt.how)
				key := fetch(t, net, "test.", "DNSKEY").Answer[0].(*dns.DNSKEY)
				if got := simnet.Anchor(dnsname.MustParse("test.")) == key.ToDS(dns.SHA256).String(); got != tt.anchored {
					t.Errorf("the DS record matches the key: %v, want %v", got, tt.anchored)
				}
				for _, name := range []string{"ns.test.", "a.wild.test."} {
					m := fetch(t, net, name, "A")
					sig := m.Answer[1].(*dns.RRSIG)
					if err := sig.Verify(key, m.Answer[:1]); (err == nil) != tt.valid {
						t.Errorf("%s: verify: %v", name, err)
					}
					if got := sig.ValidityPeriod(time.Now()); got != tt.fresh {
						t.Errorf("%s: valid now: %v, want %v", name, got, tt.fresh)
					}
				}
			})
		})
	}
}

// TestGivenSigned has a zone with signatures as records.
func TestGivenSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, `
			zone test.
			www.test. 300 A 203.0.113.1
			www.test. 300 RRSIG A 8 2 300 20991231000000 20000101000000 1 test. AAAA
			test. 300 NSEC www.test. SOA RRSIG NSEC
			www.test. 300 NSEC test. A RRSIG NSEC
		`)
		want := "NOERROR+aa, www.test. 300 A 203.0.113.1, www.test. 300 RRSIG A 2"
		if got := askWith(t, net, authority, queryOptions{do: true}, "www.test.", "A"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		want = "NXDOMAIN+aa, / test. 60 SOA 1, / test. 300 NSEC www.test. SOA RRSIG NSEC"
		if got := askWith(t, net, authority, queryOptions{do: true}, "no.test.", "A"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestNoProof denies names without a proof.
func TestNoProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, signedZone+"sign test. noproof")
		want := "NXDOMAIN+aa, / test. 60 SOA 1, / test. 60 RRSIG SOA 1"
		if got := askWith(t, net, authority, queryOptions{do: true}, "no.test.", "A"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestDSAtChild checks that a server without the parent zone denies DS records from the zone itself.
func TestDSAtChild(t *testing.T) {
	for name, want := range map[string]string{
		"example.net.":     "NOERROR+aa, / example.net. 60 SOA 1",
		"www.example.net.": "NOERROR+aa, www.example.net. 60 CNAME example.net., / example.net. 60 SOA 1",
	} {
		synctest.Test(t, func(t *testing.T) {
			net := simnet.New(1)
			net.MustServer(authority, "zone example.net.\nwww.example.net. 60 CNAME example.net.")
			if got := askWith(t, net, authority, queryOptions{}, name, "DS"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
