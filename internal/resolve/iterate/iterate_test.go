package iterate_test

import (
	"bytes"
	stdcmp "cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/simnet"
)

// The tree has two servers each for the root, test. and example.test.
const (
	rootZone = `
		zone .
		. 60 NS a.root., b.root.
		a.root. 60 A 192.0.2.1
		b.root. 60 A 192.0.2.2
		test. 60 NS ns1.nic.test., ns2.nic.test.
		test. 60 DS 1 8 2 AA
		ns1.nic.test. 60 A 192.0.2.11
		ns2.nic.test. 60 A 192.0.2.12
	`
	testZone = `
		zone test.
		test. 60 NS ns1.nic.test., ns2.nic.test.
		ns1.nic.test. 60 A 192.0.2.11
		ns2.nic.test. 60 A 192.0.2.12
		example.test. 60 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 60 A 192.0.2.21
		ns2.example.test. 60 A 192.0.2.22
		other.test. 60 NS ns.other.test.
		ns.other.test. 60 A 192.0.2.31
		far.test. 60 NS ns.other.test., dns.example.test.
	`
	exampleZone = `
		zone example.test.
		example.test. 60 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 60 A 192.0.2.21
		ns2.example.test. 60 A 192.0.2.22
		dns.example.test. 60 A 192.0.2.31
		www.example.test. 60 A 203.0.113.1
		a.b.c.example.test. 60 A 203.0.113.2
		alias.example.test. 60 CNAME www.other.test.
		loop1.example.test. 60 CNAME loop2.example.test.
		loop2.example.test. 60 CNAME loop1.example.test.
		old.example.test. 60 DNAME other.test.
		lost.example.test. 60 CNAME lost.other.test.
	`
	otherZones = `
		zone other.test.
		other.test. 60 NS ns.other.test.
		ns.other.test. 60 A 192.0.2.31
		www.other.test. 60 A 203.0.113.3
		zone far.test.
		far.test. 60 NS ns.other.test., dns.example.test.
		www.far.test. 60 A 203.0.113.4
	`
)

var servers = map[string]string{"192.0.2.1": rootZone, "192.0.2.2": rootZone, "192.0.2.11": testZone,
	"192.0.2.12": testZone,
	"192.0.2.21": exampleZone, "192.0.2.22": exampleZone, "192.0.2.31": otherZones}

func hints() []iterate.Host {
	return []iterate.Host{
		{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		{Name: dnsname.MustParse("b.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
	}
}

// internet returns the network of the tree. Servers in more get additional script lines.
func internet(more map[string]string) *simnet.Net {
	net := simnet.New(1)
	for addr, script := range servers {
		net.MustServer(addr, script)
	}
	for addr, script := range more {
		net.MustServer(addr, script)
	}
	return net
}

func question(s string) iterate.Question {
	var q iterate.Question
	if err := q.UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return q
}

// bounded returns options with hints and limits filled in.
func bounded(o iterate.Options) iterate.Options {
	o.Hints, o.Probe, o.MaxTime = hints(), stdcmp.Or(o.Probe, "probe"), stdcmp.Or(o.MaxTime, 20*time.Second)
	o.Budget = stdcmp.Or(o.Budget, resolve.NewBudget(400, 10, nil))
	o.Timeouts = []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second}
	return o
}

// walk runs a question and checks that its trace survives JSON.
func walk(t *testing.T, net *simnet.Net, q string, opts iterate.Options) *iterate.Trace {
	t.Helper()
	trace, err := (&iterate.Iterator{Exchanger: net, Options: bounded(opts)}).Run(t.Context(), question(q))
	if err != nil {
		t.Fatal(err)
	}
	for _, sent := range net.History() {
		if !netip.MustParsePrefix("192.0.2.0/24").Contains(sent.Server.Addr()) {
			t.Errorf("asked %v", sent)
		}
	}
	written := encode(t, trace)
	var read iterate.Trace
	if err := json.Unmarshal(written, &read); err != nil {
		t.Fatal(err)
	}
	if again := encode(t, &read); !bytes.Equal(written, again) {
		t.Errorf("JSON (-first +second):\n%s", cmp.Diff(string(written), string(again)))
	}
	return trace
}

func encode(t *testing.T, trace *iterate.Trace) []byte {
	t.Helper()
	out, err := json.MarshalIndent(trace, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// classes returns the classes of the replies of a zone's servers to a question. The last byte of the address
// identifies a server.
func classes(trace *iterate.Trace, zone, q string) string {
	var out []string
	for _, e := range trace.Exchanges {
		if e.Zone.String() == zone && e.Question.String() == q {
			out = append(out, fmt.Sprintf("%d %s %s", e.Server.As4()[3], e.Transport, e.Class))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

func zoneNames(trace *iterate.Trace) (out []string) {
	for _, z := range trace.Zones {
		s := z.Name.String()
		if z.Quick {
			s += " quick"
		}
		if z.Hidden {
			s += " hidden"
		}
		out = append(out, s)
	}
	return out
}

func sets(in []iterate.NSSet) string {
	var out []string
	for _, s := range in {
		out = append(out, fmt.Sprint(s.NS, " from ", s.From))
	}
	return strings.Join(out, "; ")
}

func TestHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := internet(nil)
		trace := walk(t, net, "www.example.test. A", iterate.Options{})
		if trace.Result != iterate.Answer || len(trace.Unfinished)+len(trace.Notes)+len(trace.Chain) > 0 {
			t.Errorf("result %v, unfinished %v, notes %v, chain %v", trace.Result, trace.Unfinished, trace.Notes, trace.Chain)
		}
		if diff := cmp.Diff([]string{".", "test.", "example.test."}, zoneNames(trace)); diff != "" {
			t.Errorf("zones (-want +got):\n%s", diff)
		}
		z := trace.Zone(dnsname.MustParse("example.test."))
		const ns = "[ns1.example.test. ns2.example.test.] from "
		if got, want := sets(z.ParentNS), ns+"[192.0.2.11 192.0.2.12]"; got != want {
			t.Errorf("parent has %s, want %s", got, want)
		}
		if got, want := sets(z.ChildNS), ns+"[192.0.2.21 192.0.2.22]"; got != want {
			t.Errorf("child has %s, want %s", got, want)
		}
		if got, want := fmt.Sprint(z.Hosts[0]), "{ns1.example.test. [192.0.2.21] [192.0.2.21] }"; got != want {
			t.Errorf("host %s, want %s", got, want)
		}
		if got, want := classes(trace, "example.test.", "example.test. SOA"),
			"21 tcp answer, 21 udp answer, 22 tcp answer, 22 udp answer"; got != want {
			t.Errorf("SOA: %s, want %s", got, want)
		}
		sent := slices.DeleteFunc(slices.Clone(trace.Exchanges), func(e iterate.Exchange) bool { return e.Try == 0 })
		if len(sent) != len(net.History()) || len(sent) > 40 {
			t.Errorf("%d queries, %d were seen", len(sent), len(net.History()))
		}
		for _, q := range net.History() {
			if q.Server.Addr().As4()[3] < 20 && q.Name == dnsname.MustParse("www.example.test.") {
				t.Errorf("%v: the whole name went to a zone above", q)
			}
		}
	})
}

// TestFaults breaks one of the two servers of example.test. with each fault.
func TestFaults(t *testing.T) {
	const good, www = "22 udp answer", "www.example.test. A"
	tests := []struct{ do, want string }{
		{"fault refused", "21 udp lame-refused, " + good},
		{"fault servfail", "21 udp lame-servfail, " + good},
		{"fault notauth", "21 udp lame-notauth, " + good},
		{"fault modest", "21 udp lame-notauth, " + good},
		{"fault recursed", "21 udp recursed, " + good},
		{"fault lame", "21 udp upward, " + good},
		{"fault empty", "21 udp no-soa, " + good},
		{"fault bogus", "21 udp odd, " + good},
		{"fault malformed", "21 udp parse-error, " + good},
		{"fault question", "21 udp question-mismatch, " + good},
		{"fault timeout", "21 udp timeout, " + good},
		{"fault unreachable", "21 udp unreachable, " + good},
		{"fault formerr", "21 udp formerr, " + good},
		{"fault notimp", "21 udp notimp, " + good},
		{"fault badvers", "21 udp answer, 21 udp badvers, " + good},
		{"fault truncate", "21 tcp answer, 21 udp truncated, " + good},
		{"fault truncated", "21 tcp truncated, 21 udp truncated, " + good},
		{"plain", "21 udp answer, 21 udp formerr, " + good},
		{"cookies", "21 udp answer, 21 udp badcookie, " + good},
		{"drop www.example.test.", "21 udp nxdomain, " + good},
		{"drop www.example.test.\nwww.example.test. 60 AAAA 2001:db8::1", "21 udp nodata, " + good},
		{"latency 1500ms", "21 udp answer, " + good},
		{"latency 2100ms", "21 udp answer, 21 udp timeout, " + good},
	}
	for _, tt := range tests {
		t.Run(tt.do, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				trace := walk(t, internet(map[string]string{"192.0.2.21": tt.do}), www, iterate.Options{})
				if got := classes(trace, "example.test.", www); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if trace.Result != iterate.Answer || len(trace.Unfinished) > 0 {
					t.Errorf("result %v, unfinished %v", trace.Result, trace.Unfinished)
				}
			})
		})
	}
}

// TestRD checks that no query requests recursion.
func TestRD(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trace := walk(t, internet(nil), "www.example.test. A", iterate.Options{})
		for _, e := range trace.Exchanges {
			m, err := e.Message()
			if err != nil || m.RecursionDesired || m.Id != 0 || !m.IsEdns0().Do() {
				t.Errorf("%v: %v %v", e.Question, m, err)
			}
		}
	})
}
