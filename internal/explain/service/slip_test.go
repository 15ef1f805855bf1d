package service_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/service"
	"github.com/nameplane/nameplane/internal/rr"
)

// record parses "OWNER TYPE DATA|DATA". Owners are below example.com.
func record(t *testing.T, text string) service.Record {
	t.Helper()
	f := strings.SplitN(text, " ", 3)
	owner, err := dnsname.ParseIn(f[0], dnsname.MustParse("example.com"))
	if err != nil {
		t.Fatal(err)
	}
	typ, err := rr.ParseType(f[1])
	if err != nil {
		t.Fatal(err)
	}
	return service.Record{Owner: owner, Type: typ, Data: strings.Split(f[2], "|")}
}

// TestDiagnose checks every slip with a record as a server returns it, so with escapes.
func TestDiagnose(t *testing.T) {
	const cname, a, txt = "app CNAME edge.example.net.", "app A 192.0.2.7", `_token.app TXT "a1B2-c3D4-e5F6"`
	tests := []struct {
		want string
		live []string
		slip service.Slip
	}{
		{cname, []string{"app.example.com.example.com. CNAME edge.example.net."}, service.DoubledSuffix},
		{"@ A 192.0.2.7", []string{"@.example.com. A 192.0.2.7"}, service.TypedAt},
		{cname, []string{`app CNAME \"edge.example.net\".`}, service.Quotes},
		{txt, []string{`_token.app TXT "\"a1B2-c3D4-e5F6\""`}, service.Quotes},
		{txt, []string{`_token.app TXT "\226\128\156a1B2-c3D4-e5F6\226\128\157"`}, service.Quotes},
		{txt, []string{`_token.app TXT "a1B2-c3D4-e5F6\194\160"`}, service.Spaces},
		{txt, []string{`_token.app TXT "a1B2-c3D4-e5F6 "`}, service.Spaces},
		{txt, []string{`_token.app TXT "a1B2-c3D4\226\128\139-e5F6"`}, service.Spaces},
		{cname, []string{`app CNAME edge.example.net\032.`}, service.Spaces},
		{cname, []string{"app TXT \"edge.example.net\""}, service.WrongType},
		{a, []string{"app CNAME 192.0.2.7."}, service.WrongType},
		{a, []string{"app AAAA ::ffff:192.0.2.7"}, service.MappedIPv4},
		{a, []string{"app AAAA ::c000:207"}, service.MappedIPv4},
		{cname, []string{"app CNAME https://edge.example.net."}, service.URL},
		{cname, []string{"app CNAME https://edge.example.net/path."}, service.URL},
		{cname, []string{"app CNAME edge.example.net:443."}, service.URL},
		{txt, []string{`_token.app TXT "a1B2\226\128\147c3D4\226\128\147e5F6"`}, service.Dash},
		{txt, []string{`@ TXT "v=spf1 -all"|"a1B2-c3D4-e5F6"`}, service.OtherOwner},
		{txt, []string{`app TXT "a1B2-c3D4-e5F6"`}, service.OtherOwner},
		{txt, []string{`token.app TXT "a1B2-c3D4-e5F6"`}, service.Underscore},
		{txt, []string{`_token.app TXT "c3D4-e5F6"|"a1B2-"`}, service.Split},
		{txt, []string{`_token.app TXT "x9 a1B2-c3D4-e5F6 y8"`}, service.Joined},
		{txt, []string{`_token.app TXT "token=a1B2-c3D4-e5F6"`}, service.WholeLine},
		{txt, []string{`_token.app TXT "a1b2-c3d4-e5f6"`}, service.LetterCase},
		{txt, []string{`_token.app TXT "a1B2-c3D4"`}, service.Cut},
		{txt, []string{`_token.app TXT "a1B2-c3D4-e5F8"`}, service.Typo},
		{`x TXT "a&b;c"`, []string{`x TXT "a&amp;b;c"`}, service.Entity},
		{`x TXT "v=1; k=2"`, []string{`x TXT "v=1\\; k=2"`}, service.Entity},
		{a, []string{"app A 192.0.2.7|198.51.100.1"}, service.OldBeside},
		{cname, []string{"app CNAME edge.example.net.example.com."}, service.NoFinalDot},
		{cname, []string{"app.example.net. CNAME edge.example.net."}, service.OtherZone},

		{cname, []string{"app CNAME Edge.Example.NET."}, ""},
		{cname, []string{"app CNAME other.example.org."}, ""},
		{cname, nil, ""},
		{a, []string{"app A 192.0.2.7"}, ""},
		{a, []string{"app A 198.51.100.1"}, ""},
		{a, []string{"app A 192.0.2.8"}, ""},
		{a, []string{"app AAAA 2001:db8::1"}, ""},
		{txt, []string{`_token.app TXT "v=other"|"a1B2-c3D4-e5F6"`}, ""},
		{txt, []string{`_token.app TXT "a1B2-" "c3D4-e5F6"`}, ""},
	}
	zone := dnsname.MustParse("example.com")
	for _, tt := range tests {
		var live []service.Live
		for _, text := range tt.live {
			r := record(t, text)
			live = append(live, service.Live{Owner: r.Owner, Type: r.Type, Data: r.Data})
		}
		got, ok := service.Diagnose(record(t, tt.want), zone, live)
		if got.Slip != tt.slip || ok != (tt.slip != "") {
			t.Errorf("want %s, has %q: %q, want %q", tt.want, tt.live, got.Slip, tt.slip)
		}
	}
}

// TestHealthyHasNoSlip compares right records of 200 random set-ups, in the forms that servers give them.
func TestHealthyHasNoSlip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	zone := dnsname.MustParse("example.com")
	for i := range 200 {
		label := fmt.Sprintf("h%x", random.Uint32())
		text := []string{
			fmt.Sprintf("%s CNAME E%x.example.NET.", label, random.Uint32()),
			fmt.Sprintf("%s A 192.0.2.%d|198.51.100.%d", label, random.IntN(256), random.IntN(256)),
			fmt.Sprintf("%s AAAA 2001:db8::%x", label, 1+random.IntN(65535)),
			fmt.Sprintf(`_t.%s TXT "%x-%x"`, label, random.Uint64(), random.Uint64()),
		}[i%4]
		want := record(t, text)
		live := service.Live{Owner: want.Owner, Type: want.Type, Data: slices.Clone(want.Data)}
		switch want.Type {
		case rr.TypeCNAME:
			live.Data[0] = strings.ToLower(live.Data[0])
		case rr.TypeTXT: // other services, and a text in two strings
			s := live.Data[0]
			live.Data = []string{`"v=spf1 -all"`, s[:8] + `" "` + s[8:]}
		case rr.TypeA:
			slices.Reverse(live.Data)
		}
		if d, ok := service.Diagnose(want, zone, []service.Live{live}); ok {
			t.Errorf("%s, served as %q: %s", text, live.Data, d.Words())
		}
	}
}

func TestExpected(t *testing.T) {
	zone := dnsname.MustParse("example.com")
	edge := service.Targets{Hosts: []dnsname.Name{dnsname.MustParse("edge.example.net")}}
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}
	tests := []struct {
		name string
		host string
		t    service.Targets
		want string
	}{
		{"a name", "www.example.com", edge, "www CNAME edge.example.net. 300"},
		{"a wildcard", "*.example.com", edge, "* CNAME edge.example.net. 300"},
		{"the apex", "example.com", edge, "@ A 192.0.2.7 300, @ AAAA 2001:db8::7 300"},
		{"addresses", "www.example.com", service.Targets{Addrs: addrs},
			"www A 192.0.2.7 300, www AAAA 2001:db8::7 300"},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range service.Expected(dnsname.MustParse(tt.host), zone, tt.t, addrs) {
			got = append(got, fmt.Sprintf("%s %s %s %d", service.HostField(r.Owner, zone), r.Type,
				strings.Join(r.Data, "|"), r.TTL))
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}
