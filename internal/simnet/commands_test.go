package simnet_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/wire"
)

// queryOptions are the options of a test query.
type queryOptions struct {
	noEDNS, do, noRD, cd bool
	subnet               string
	tcp                  bool
}

func (a queryOptions) query(name, typ string) *dns.Msg {
	q := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	q.RecursionDesired, q.CheckingDisabled = !a.noRD, a.cd
	if a.noEDNS {
		return q
	}
	q.SetEdns0(wire.UDPSize, a.do)
	if a.subnet != "" {
		p := netip.MustParsePrefix(a.subnet)
		q.IsEdns0().Option = append(q.IsEdns0().Option, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1,
			SourceNetmask: uint8(p.Bits()), Address: p.Addr().AsSlice()})
	}
	return q
}

// askWith queries a server and returns the reply as one line, with the relevant flags and options.
func askWith(t *testing.T, ex resolve.Exchanger, server string, a queryOptions, name, typ string) string {
	t.Helper()
	srv, err := resolve.ParseServer(server)
	if err != nil {
		t.Fatal(err)
	}
	if a.tcp {
		srv.Transport = resolve.TCP
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	m, err := ex.Exchange(ctx, srv, a.query(name, typ))
	if err != nil {
		return "failed"
	}
	return line(m)
}

func line(m *dns.Msg) string {
	out := []string{dns.RcodeToString[m.Rcode]}
	if m.Authoritative {
		out[0] += "+aa"
	}
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			switch o := o.(type) {
			case *dns.EDNS0_EDE:
				out[0] += fmt.Sprintf("+ede%d", o.InfoCode)
			case *dns.EDNS0_SUBNET:
				out[0] += fmt.Sprintf("+scope%d", o.SourceScope)
			}
		}
	}
	for _, rec := range m.Answer {
		out = append(out, brief(rec))
	}
	for _, rec := range m.Ns {
		out = append(out, "/ "+brief(rec))
	}
	return strings.Join(out, ", ")
}

// brief returns a record without the parts that are not predictable.
func brief(rec dns.RR) string {
	switch r := rec.(type) {
	case *dns.RRSIG:
		return fmt.Sprintf("%s %d RRSIG %s %d", r.Hdr.Name, r.Hdr.Ttl, dns.TypeToString[r.TypeCovered], r.Labels)
	case *dns.SOA:
		return fmt.Sprintf("%s %d SOA %d", r.Hdr.Name, r.Hdr.Ttl, r.Serial)
	}
	return text(rec)
}

func TestCommands(t *testing.T) {
	const zone = `
		zone example.net.
		example.net. 600 SOA ns.example.net. host.example.net. 7 2 2 2 300
		www.example.net. 60 A 203.0.113.1
		*.wild.example.net. 60 TXT "any, thing"
		deep.wild.example.net. 60 A 203.0.113.2
	`
	const good = "NOERROR+aa, www.example.net. 60 A 203.0.113.1"
	tests := []struct {
		script    string
		ask       queryOptions
		name, typ string
		want      string
	}{
		{"", queryOptions{}, "www.example.net.", "A", good},
		{"", queryOptions{}, "no.example.net.", "A", "NXDOMAIN+aa, / example.net. 300 SOA 7"},
		{"serial example.net. 8", queryOptions{}, "example.net.", "SOA", "NOERROR+aa, example.net. 600 SOA 8"},
		{"", queryOptions{}, "a.wild.example.net.", "TXT", `NOERROR+aa, a.wild.example.net. 60 TXT "any, thing"`},
		{"", queryOptions{}, "a.b.wild.example.net.", "TXT", `NOERROR+aa, a.b.wild.example.net. 60 TXT "any, thing"`},
		{"", queryOptions{}, "a.wild.example.net.", "A", "NOERROR+aa, / example.net. 300 SOA 7"},
		{"", queryOptions{}, "deep.wild.example.net.", "TXT", "NOERROR+aa, / example.net. 300 SOA 7"},
		{"", queryOptions{}, "a.deep.wild.example.net.", "TXT", "NXDOMAIN+aa, / example.net. 300 SOA 7"},
		{"bare", queryOptions{}, "no.example.net.", "A", "NXDOMAIN+aa"},
		{"bare", queryOptions{}, "www.example.net.", "TXT", "NOERROR+aa"},
		{"loose", queryOptions{}, "no.example.net.", "A", "NXDOMAIN+aa, / example.net. 600 SOA 7"},
		{"only udp", queryOptions{}, "www.example.net.", "A", good},
		{"only udp", queryOptions{tcp: true}, "www.example.net.", "A", "failed"},
		{"only tcp", queryOptions{}, "www.example.net.", "A", "failed"},
		{"only tcp", queryOptions{tcp: true}, "www.example.net.", "A", good},
		{"ignorant", queryOptions{}, "www.example.net.", "A", good},
		{"ignorant", queryOptions{}, "www.example.net.", "CAA", "failed"},
		{"deaf 198.51.100.0/24", queryOptions{}, "www.example.net.", "A", good},
		{"deaf 127.0.0.0/8", queryOptions{}, "www.example.net.", "A", "failed"},
		{"edns drop", queryOptions{}, "www.example.net.", "A", "failed"},
		{"edns drop", queryOptions{noEDNS: true}, "www.example.net.", "A", good},
		{"edns formerr", queryOptions{}, "www.example.net.", "A", "FORMERR"},
		{"edns formerr", queryOptions{noEDNS: true}, "www.example.net.", "A", good},
		{"fault id", queryOptions{}, "www.example.net.", "A", "failed"},
		{"source 192.0.2.99", queryOptions{}, "www.example.net.", "A", "failed"},
		{"source 192.0.2.99", queryOptions{tcp: true}, "www.example.net.", "A", good},
		{"folds", queryOptions{}, "WWW.example.net.", "A", good},
		{"view 198.51.100.0/24 www.example.net. 60 A 203.0.113.9", queryOptions{}, "www.example.net.", "A", good},
		{"view 127.0.0.0/8 www.example.net. 60 A 203.0.113.9", queryOptions{}, "www.example.net.", "A",
			"NOERROR+aa, www.example.net. 60 A 203.0.113.9"},
		{"view 198.51.100.0/24 www.example.net. 60 A 203.0.113.9", queryOptions{subnet: "198.51.100.0/24"},
			"www.example.net.", "A", good},
		{"subnets\nview 198.51.100.0/24 www.example.net. 60 A 203.0.113.9", queryOptions{subnet: "198.51.100.0/24"},
			"www.example.net.", "A", "NOERROR+aa+scope24, www.example.net. 60 A 203.0.113.9"},
		{"subnets\nview 198.51.100.0/24 www.example.net. 60 A 203.0.113.9", queryOptions{subnet: "192.0.2.0/24"},
			"www.example.net.", "A", "NOERROR+aa+scope24, www.example.net. 60 A 203.0.113.1"},
		{"", queryOptions{tcp: true}, "example.net.", "AXFR", "REFUSED"},
		{"drop deep.wild.example.net.\ndrop *.wild.example.net.\ntransfers", queryOptions{tcp: true}, "example.net.", "AXFR",
			"NOERROR+aa, example.net. 600 SOA 7, www.example.net. 60 A 203.0.113.1, example.net. 600 SOA 7"},
	}
	for _, tt := range tests {
		t.Run(tt.script+" "+tt.name+" "+tt.typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer(authority, zone+tt.script)
				exchangers := map[string]resolve.Exchanger{"exchange": net, "dial": &resolve.Client{Dial: net.Dial, AsIs: true}}
				for kind, ex := range exchangers {
					if got := askWith(t, ex, authority, tt.ask, tt.name, tt.typ); got != tt.want {
						t.Errorf("%s: got %s, want %s", kind, got, tt.want)
					}
				}
				time.Sleep(time.Minute) // until the client has closed its connections
			})
			if tt.want == "failed" {
				return // a timeout takes real time here; TestListen covers it
			}
			net := simnet.New(1)
			net.MustServer(authority, zone+tt.script)
			client := &resolve.Client{AsIs: true}
			defer client.CloseIdle()
			at := serve(t, net).Addrs()[netip.MustParseAddrPort(authority+":53")].String()
			if got := askWith(t, client, at, tt.ask, tt.name, tt.typ); got != tt.want {
				t.Errorf("sockets: got %s, want %s", got, tt.want)
			}
		})
	}
}

// serve serves a network on sockets until the test ends.
func serve(t *testing.T, net *simnet.Net) *simnet.Sockets {
	t.Helper()
	sockets, err := net.Listen(0)
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
	return sockets
}

func TestTTLsInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, exampleNet+"ttls cdn.example.net. A 300 200")
		var got []string
		for range 3 {
			got = append(got, strings.Fields(ask(t, net, authority, "cdn.example.net.", "A"))[2])
		}
		if diff := cmp.Diff([]string{"300", "200", "300"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestListen queries servers over real sockets, each on its own address.
func TestListen(t *testing.T) {
	net := simnet.New(1)
	net.MustServer(authority, exampleNet+"nsid one")
	net.MustServer("192.0.2.54", exampleNet+"only udp\nsource "+authority)
	net.MustServer("192.0.2.55", exampleNet+"fault truncate")
	net.MustServer("2001:db8::1", exampleNet+"fault unreachable")
	sockets := serve(t, net)
	const good = "NOERROR, cdn.example.net. 60 A 203.0.113.1, cdn.example.net. 60 A 203.0.113.2"
	client := &resolve.Client{}
	defer client.CloseIdle()
	tests := []struct{ addr, udp, tcp string }{
		{authority + ":53", good, good},
		{"192.0.2.54:53", "timeout", "error"},
		{"192.0.2.55:53", good, good},
		{"[2001:db8::1]:53", "timeout", "error"},
	}
	t.Run("all", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.addr, func(t *testing.T) {
				t.Parallel() // because some wait for timeouts
				at := sockets.Addrs()[netip.MustParseAddrPort(tt.addr)]
				if !at.Addr().IsLoopback() {
					t.Fatalf("the address is %v", at)
				}
				if got := ask(t, client, at.String(), "cdn.example.net.", "A"); got != tt.udp {
					t.Errorf("got %s, want %s", got, tt.udp)
				}
				if got := ask(t, client, "tcp://"+at.String(), "cdn.example.net.", "A"); got != tt.tcp {
					t.Errorf("over TCP: got %s, want %s", got, tt.tcp)
				}
			})
		}
	})
}
