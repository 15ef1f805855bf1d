package gather_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/simnet"
)

// The simulated internet: two servers each for the root, test., example.test. and good.test., one for other.test.,
// and two resolvers.
const (
	rootZone = `
		zone .
		. 60 NS a.root., b.root.
		. 60 SOA a.root. hostmaster.root. 1 7200 3600 1209600 60
		a.root. 60 A 192.0.2.1
		b.root. 60 A 192.0.2.2
		test. 60 NS ns1.nic.test., ns2.nic.test.
		ns1.nic.test. 60 A 192.0.2.11
		ns2.nic.test. 60 A 192.0.2.12
	`
	testZone = `
		zone test. 900
		test. 60 NS ns1.nic.test., ns2.nic.test.
		ns1.nic.test. 60 A 192.0.2.11
		ns2.nic.test. 60 A 192.0.2.12
		example.test. 172800 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 172800 A 192.0.2.21
		ns2.example.test. 172800 A 192.0.2.22
		other.test. 3600 NS ns.other.test.
		ns.other.test. 3600 A 192.0.2.31
	`
	exampleZone = `
		zone example.test.
		example.test. 3600 SOA ns1.example.test. hostmaster.example.test. 2026010101 7200 3600 1209600 300
		example.test. 3600 NS ns1.example.test., ns2.example.test.
		ns1.example.test. 3600 A 192.0.2.21
		ns2.example.test. 3600 A 192.0.2.22
		www.example.test. 300 A 203.0.113.1, 203.0.113.2
		www.example.test. 300 AAAA 2001:db8::1
		alias.example.test. 600 CNAME www.other.test.
		lost.example.test. 600 CNAME lost.other.test.
		only4.example.test. 300 A 203.0.113.4
		*.wild.example.test. 300 A 203.0.113.9
	`
	otherZone = `
		zone other.test.
		other.test. 3600 SOA ns.other.test. hostmaster.other.test. 7 7200 3600 1209600 60
		other.test. 3600 NS ns.other.test.
		ns.other.test. 3600 A 192.0.2.31
		www.other.test. 120 A 203.0.113.3
		www.other.test. 120 AAAA 2001:db8::3
	`
)

var servers = map[string]string{"192.0.2.1": rootZone, "192.0.2.2": rootZone, "192.0.2.11": testZone,
	"192.0.2.12": testZone,
	"192.0.2.21": exampleZone, "192.0.2.22": exampleZone, "192.0.2.31": otherZone}

const (
	resolverA = "198.51.100.1"
	resolverB = "198.51.100.2"
	resolving = "resolve 192.0.2.1 192.0.2.2"
)

// internet returns the simulated network. more adds lines to the scripts of some servers.
func internet(more map[string]string) *simnet.Net {
	net := simnet.New(1)
	for addr, script := range servers {
		net.MustServer(addr, script)
	}
	for _, addr := range []string{resolverA, resolverB} {
		net.MustServer(addr, resolving)
	}
	for addr, script := range more {
		net.MustServer(addr, script)
	}
	return net
}

func hints() []iterate.Host {
	return []iterate.Host{
		{Name: dnsname.MustParse("a.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.1")}},
		{Name: dnsname.MustParse("b.root."), Glue: []netip.Addr{netip.MustParseAddr("192.0.2.2")}},
	}
}

func list() []resolvers.Resolver {
	return []resolvers.Resolver{
		{ID: "a", Operator: "Operator A", Vote: true, V4: []netip.Addr{netip.MustParseAddr(resolverA)}},
		{ID: "b", Operator: "Operator B", Vote: true, V4: []netip.Addr{netip.MustParseAddr(resolverB)}},
	}
}

// registrar is a Registry with fixed answers.
type registrar map[string]registry.State

func (g registrar) Lookup(_ context.Context, domain dnsname.Name) (registry.Registration, error) {
	state, ok := g[domain.String()]
	if !ok {
		return registry.Registration{}, fmt.Errorf("nobody asked about %s before", domain)
	}
	return registry.Registration{Domain: domain.String(), State: state, Why: "the test says so"}, nil
}

func gatherer(net *simnet.Net) *gather.Gatherer {
	return &gather.Gatherer{Exchanger: net, Prober: &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket},
		Hints:     hints(),
		Resolvers: list(), Anchors: []secure.Anchor{}, Options: gather.Options{Seed: 1, Vantage: "sim", Rate: 100}}
}

// run calls do with a simulated internet in a synctest bubble.
func run(t *testing.T, more map[string]string, do func(t *testing.T, net *simnet.Net, g *gather.Gatherer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		net := internet(more)
		do(t, net, gatherer(net))
	})
}

// must returns the facts after saving and loading them, and checks that this does not change them.
func must(t *testing.T, f *explain.Facts, err error) *explain.Facts {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := gather.Save(&first, f); err != nil {
		t.Fatal(err)
	}
	text := first.String()
	read, err := gather.Load(&first)
	if err != nil {
		t.Fatal(err)
	}
	if err := gather.Save(&second, read); err != nil {
		t.Fatal(err)
	}
	if second.String() != text {
		t.Errorf("writing a file that was read gives another text (-first +second):\n%s", cmp.Diff(text, second.String()))
	}
	if !reflect.DeepEqual(read.Secure, f.Secure) {
		t.Errorf("validation gives %+v, and %+v when the file was read", f.Secure, read.Secure)
	}
	return read
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// server returns a server of a zone.
func server(t *testing.T, f *explain.Facts, zone, at string) explain.Server {
	t.Helper()
	i := slices.IndexFunc(f.Servers, func(s explain.Server) bool { return s.Zone.String() == zone && s.Addr == addr(at) })
	if i < 0 {
		t.Fatalf("there is no server %s of %s", at, zone)
	}
	return f.Servers[i]
}

// said returns the answers to a question, each with the last byte of the server's address.
func said(f *explain.Facts, q string) string {
	var out []string
	for _, a := range f.Answers {
		if a.Question.String() != q {
			continue
		}
		line := fmt.Sprintf("%d %s%s", a.Server.As4()[3], a.Class, setText(a.Sets))
		for _, o := range a.Others {
			line += " or" + setText(o)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func setText(sets []explain.Set) (out string) {
	for _, s := range sets {
		out += fmt.Sprintf(" %s %s", s.Type, strings.Join(s.Data, ","))
	}
	return out
}

// outcomes returns the outcomes as one line.
func outcomes(f *explain.Facts) string {
	var out []string
	for _, o := range f.Outcomes {
		out = append(out, fmt.Sprintf("%s %s at %s in %s%s", o.Type, o.Result, o.End, o.Zone, setText(o.Sets)))
	}
	return strings.Join(out, "; ")
}
