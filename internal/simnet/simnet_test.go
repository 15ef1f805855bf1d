package simnet_test

import (
	"context"
	"errors"
	"fmt"
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

const (
	authority = "192.0.2.53"
	resolver  = "192.0.2.1"
)

var _ resolve.Exchanger = (*simnet.Net)(nil)

// ask queries a server and returns the reply as one line: its RCODE and flags, then its records.
func ask(t *testing.T, ex resolve.Exchanger, server, name, typ string) string {
	t.Helper()
	srv, err := resolve.ParseServer(server)
	if err != nil {
		t.Fatal(err)
	}
	query := new(dns.Msg).SetQuestion(name, dns.StringToType[typ])
	query.SetEdns0(wire.UDPSize, false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	m, err := ex.Exchange(ctx, srv, query)
	var unreadable *dns.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.As(err, &unreadable):
		return "unreadable"
	case err != nil:
		return "error"
	}
	out := []string{dns.RcodeToString[m.Rcode]}
	if m.Truncated {
		out[0] += "+tc"
	}
	for _, rec := range m.Answer {
		out = append(out, text(rec))
	}
	for _, rec := range m.Ns {
		out = append(out, "/ "+text(rec))
	}
	return strings.Join(out, ", ")
}

func text(rec dns.RR) string {
	h := rec.Header()
	data := strings.TrimPrefix(rec.String(), h.String())
	if h.Rrtype == dns.TypeSOA {
		data = "..."
	}
	return fmt.Sprintf("%s %d %s %s", h.Name, h.Ttl, dns.TypeToString[h.Rrtype], data)
}

const exampleNet = `
	zone example.net. 30
	cdn.example.net. 60 A 203.0.113.1, 203.0.113.2
	www.example.net. 300 CNAME cdn.example.net.
	out.example.net. 300 CNAME cdn.example.org.
	loop.example.net. 300 CNAME loop.example.net.
	a.b.example.net. 60 AAAA 2001:db8::1
`

func TestAnswers(t *testing.T) {
	tests := []struct{ name, typ, want string }{
		{"cdn.example.net.", "A", "NOERROR, cdn.example.net. 60 A 203.0.113.1, cdn.example.net. 60 A 203.0.113.2"},
		{"cdn.example.net.", "AAAA", "NOERROR, / example.net. 30 SOA ..."},
		{"www.example.net.", "A",
			"NOERROR, www.example.net. 300 CNAME cdn.example.net., cdn.example.net. 60 A 203.0.113.1, " +
				"cdn.example.net. 60 A 203.0.113.2"},
		{"www.example.net.", "CNAME", "NOERROR, www.example.net. 300 CNAME cdn.example.net."},
		{"www.example.net.", "AAAA", "NOERROR, www.example.net. 300 CNAME cdn.example.net., / example.net. 30 SOA ..."},
		{"out.example.net.", "A", "NOERROR, out.example.net. 300 CNAME cdn.example.org."},
		{"loop.example.net.", "A", "NOERROR, loop.example.net. 300 CNAME loop.example.net."},
		{"b.example.net.", "A", "NOERROR, / example.net. 30 SOA ..."},
		{"c.example.net.", "A", "NXDOMAIN, / example.net. 30 SOA ..."},
		{"example.com.", "A", "REFUSED"},
	}
	for _, tt := range tests {
		t.Run(tt.name+tt.typ, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(1)
				net.MustServer(authority, exampleNet)
				if got := ask(t, net, authority, tt.name, tt.typ); got != tt.want {
					t.Errorf("%s %s = %s, want %s", tt.name, tt.typ, got, tt.want)
				}
			})
		})
	}
}

// TestFaults queries through the network itself and through a resolve.Client with connections. The results must be
// the same.
func TestFaults(t *testing.T) {
	const good = "NOERROR, cdn.example.net. 60 A 203.0.113.1, cdn.example.net. 60 A 203.0.113.2"
	tests := []struct{ fault, want string }{
		{"", good},
		{"fault timeout", "timeout"},
		{"fault timeout * AAAA", good},
		{"fault timeout other.example.net.", good},
		{"fault unreachable", "error"},
		{"fault servfail cdn.example.net.", "SERVFAIL"},
		{"fault refused cdn.example.net. A", "REFUSED"},
		{"fault formerr", "FORMERR"},
		{"fault nxdomain", "NXDOMAIN, / . 60 SOA ..."},
		{"fault nodata", "NOERROR, / . 60 SOA ..."},
		{"fault empty", "NOERROR"},
		{"fault lame", "NOERROR, / . 518400 NS a.root-servers.test."},
		{"fault bogus", "NOERROR, stray.invalid. 3600 A 203.0.113.66"},
		{"fault question", "timeout"},
		{"fault malformed", "unreadable"},
		{"fault truncate", good},
		{"fault truncated", "NOERROR+tc"},
		{"fault servfail\nfault timeout * A\nheal * A", "SERVFAIL"},
		{"fault servfail\nheal", good},
		{"loss 100%", "timeout"},
		{"latency 999ms", good},
		{"latency 1001ms", "timeout"},
		{"latency 400ms\nfault truncate", "timeout"},
	}
	for _, tt := range tests {
		for _, kind := range []string{"exchange", "dial"} {
			t.Run(kind+"/"+tt.fault, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					net := simnet.New(1)
					net.MustServer(authority, exampleNet+tt.fault)
					var ex resolve.Exchanger = net
					if kind == "dial" {
						ex = &resolve.Client{Dial: net.Dial}
						defer time.Sleep(time.Minute) // until the client has closed its connections
					}
					if got := ask(t, ex, authority, "cdn.example.net.", "A"); got != tt.want {
						t.Errorf("%q: got %s, want %s", tt.fault, got, tt.want)
					}
				})
			})
		}
	}
}

func TestTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		s := net.MustServer(authority, "zone example.net.")
		for i := range 100 {
			if err := s.Do(fmt.Sprintf("many.example.net. 60 A 203.0.113.%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Count(ask(t, net, authority, "many.example.net.", "A"), " A "); got != 100 {
			t.Errorf("got %d addresses, want 100", got)
		}
		var used []resolve.Transport
		for _, q := range net.History() {
			used = append(used, q.Transport)
		}
		if diff := cmp.Diff([]resolve.Transport{resolve.UDP, resolve.TCP}, used); diff != "" {
			t.Errorf("transports (-want +got):\n%s", diff)
		}
	})
}

func TestScriptOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, `
			zone example.net.
			cdn.example.net. 60 A 203.0.113.1
			at 20s drop cdn.example.net. A
			at 10s set cdn.example.net. 60 A 203.0.113.2
			at 10s cdn.example.net. 60 A 203.0.113.3
			at 30s fault servfail
		`)
		var got []string
		for range 4 {
			got = append(got, ask(t, net, authority, "cdn.example.net.", "A"))
			time.Sleep(10 * time.Second)
		}
		want := []string{
			"NOERROR, cdn.example.net. 60 A 203.0.113.1",
			"NOERROR, cdn.example.net. 60 A 203.0.113.2, cdn.example.net. 60 A 203.0.113.3",
			"NXDOMAIN, / example.net. 60 SOA ...",
			"SERVFAIL",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, exampleNet+"at 10s set cdn.example.net. 60 A 203.0.113.9\nat 70s fault servfail")
		net.MustServer("192.0.2.54", "zone example.org.\ncdn.example.org. 20 A 203.0.113.7")
		net.MustServer(resolver, "forward example.net. "+authority+"\nforward example.org. 192.0.2.54")
		steps := []struct {
			wait            time.Duration
			name, typ, want string
		}{
			{0, "cdn.example.net.", "A", "NOERROR, cdn.example.net. 60 A 203.0.113.1, cdn.example.net. 60 A 203.0.113.2"},
			{0, "out.example.net.", "A",
				"NOERROR, out.example.net. 300 CNAME cdn.example.org., cdn.example.org. 20 A 203.0.113.7"},
			{0, "c.example.net.", "A", "NXDOMAIN, / example.net. 30 SOA ..."},
			{15 * time.Second, "cdn.example.net.", "A",
				"NOERROR, cdn.example.net. 45 A 203.0.113.1, cdn.example.net. 45 A 203.0.113.2"},
			{0, "c.example.net.", "A", "NXDOMAIN, / example.net. 15 SOA ..."},
			{45 * time.Second, "cdn.example.net.", "A", "NOERROR, cdn.example.net. 60 A 203.0.113.9"},
			{61 * time.Second, "cdn.example.net.", "A", "SERVFAIL"},
			{0, "example.com.", "A", "REFUSED"},
		}
		for _, s := range steps {
			time.Sleep(s.wait)
			if got := ask(t, net, resolver, s.name, s.typ); got != s.want {
				t.Errorf("at %v: %s %s = %s, want %s", net.Age(), s.name, s.typ, got, s.want)
			}
		}
	})
}

func TestRotateAndLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, exampleNet+"rotate\nlazy")
		first, second := ask(t, net, authority, "cdn.example.net.", "A"), ask(t, net, authority, "cdn.example.net.", "A")
		if first == second {
			t.Errorf("twice %s", first)
		}
		if got, want := ask(t, net, authority, "www.example.net.", "A"),
			"NOERROR, www.example.net. 300 CNAME cdn.example.net."; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestChance checks that the same seed gives the same events, and about the right number of them.
func TestChance(t *testing.T) {
	draw := func(seed uint64) (out string) {
		synctest.Test(t, func(t *testing.T) {
			net := simnet.New(seed)
			net.MustServer(authority, exampleNet+"loss 25%\nlatency 1ms 9ms")
			for range 200 {
				began := time.Now()
				got := ask(t, net, authority, "cdn.example.net.", "A")
				out += fmt.Sprintln(got, time.Since(began))
			}
		})
		return out
	}
	one := draw(1)
	if again := draw(1); again != one {
		t.Errorf("the same seed gave (-first +second):\n%s", cmp.Diff(one, again))
	}
	if draw(2) == one {
		t.Error("another seed gave the same events")
	}
	if lost := strings.Count(one, "timeout"); lost < 30 || lost > 70 {
		t.Errorf("%d of 200 queries were lost, want about 50", lost)
	}
}

func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		net.MustServer(authority, exampleNet+"fault truncate")
		time.Sleep(time.Minute)
		ask(t, net, authority, "cdn.example.net.", "A")
		ask(t, net, "192.0.2.99", "cdn.example.net.", "A") // there is no server
		var got []string
		for _, q := range net.History() {
			got = append(got, q.String())
		}
		want := []string{"1m0s udp://192.0.2.53:53 cdn.example.net. A", "1m0s tcp://192.0.2.53:53 cdn.example.net. A"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		net.Forget()
		if got := net.History(); len(got) != 0 {
			t.Errorf("the history after Forget is %v", got)
		}
	})
}

func TestScriptMistakes(t *testing.T) {
	tests := []string{
		"zone", "zone a..b.", "zone example.net. x", "cdn.example.org. 60 A 192.0.2.1", "example.net. 60 A",
		"example.net. x A 192.0.2.1",
		"example.net. 60 A 192.0.2.300", "set example.net. 60 A", "drop", "drop example.net. NOTYPE", "forward .",
		"forward . example.org",
		"latency", "latency soon", "latency 1s later", "loss much", "lazy yes", "fault", "fault earthquake",
		"fault timeout a..b.", "heal * NOTYPE",
		"serial example.org. 1", "serial example.net. x", "view 1.2.3 www.example.net. 60 A 192.0.2.1",
		"view 0.0.0.0/0 www.example.net. 60 A",
		"ttls www.example.net. A x", "ttls www.example.net. NOTYPE 60", "sign example.org.", "sign example.net. badly",
		"ds a..b. 60", "ds a.example.net. x",
		"resolve nowhere", "clamp 60", "resolve 192.0.2.1 x", "stale", "caches 2", "hold www.example.net. 60 A 192.0.2.1",
		"deny www.example.net. 60 A example.net.",
		"only quic", "edns perhaps", "source nowhere", "nsid", "bare naked",
		"at", "at 5s", "at noon lazy", "at 5s dance a",
	}
	for _, line := range tests {
		if _, err := simnet.New(1).Server(authority, "zone example.net.\n"+line); err == nil ||
			!strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%q: err = %v, want one for line 2", line, err)
		}
	}
	if _, err := simnet.New(1).Server("example.org", ""); err == nil {
		t.Error("a host name was accepted as an address")
	}
}
