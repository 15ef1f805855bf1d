package dnsserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
	"github.com/nameplane/nameplane/internal/zone"
)

// records is the zone of the tests: name, TTL, type, data.
const records = `
@        3600 SOA   ns1 hostmaster 1 3600 600 86400 300
@        3600 NS    ns1
ns1      3600 A     192.0.2.53
www      300  A     192.0.2.1
alias    300  CNAME www
*.wild   300  A     192.0.2.2
sub      300  NS    ns.sub
ns.sub   300  A     192.0.2.54
out      300  CNAME www.example.net.
outer    300  CNAME out
away     300  DNAME example.net.
tosub    300  CNAME a.sub
loop     300  CNAME pool
pool     300  CNAME loop
`

var origin = dnsname.MustParse("example.org.")

// testZones returns the zone of records, with a set of 60 addresses at "big" and 40 long texts at "huge".
func testZones(tb testing.TB) *zone.Snapshot {
	tb.Helper()
	b := zone.NewNodes(uuid.Nil, origin).Edit()
	put := func(name, ttl, typ string, data ...string) {
		n, err := dnsname.ParseIn(name, origin)
		if err != nil {
			tb.Fatal(err)
		}
		t, err := rr.ParseType(typ)
		if err != nil {
			tb.Fatal(err)
		}
		var seconds uint32
		fmt.Sscan(ttl, &seconds)
		var wires []string
		for _, d := range data {
			w, err := rr.ParseDataIn(t, d, origin)
			if err != nil {
				tb.Fatal(err)
			}
			wires = append(wires, w)
		}
		b.Put(rr.NewSet(n, t, seconds, wires...))
	}
	for line := range strings.Lines(strings.TrimSpace(records)) {
		f := strings.Fields(line)
		put(f[0], f[1], f[2], strings.Join(f[3:], " "))
	}
	var big, huge []string
	for i := range 60 {
		big = append(big, fmt.Sprintf("198.51.100.%d", i))
	}
	for i := range 40 {
		huge = append(huge, fmt.Sprintf("%q", fmt.Sprintf("%03d%s", i, strings.Repeat("x", 250))))
	}
	put("big", "300", "A", big...)
	put("huge", "300", "TXT", huge...)
	return zone.NewSnapshot(b.Done())
}

// withDefaults returns cfg with the test zone on loopback, and with the daemon's defaults for unset values.
func withDefaults(tb testing.TB, cfg Config) Config {
	tb.Helper()
	if cfg.Listen == nil {
		cfg.Listen = []string{"127.0.0.1:0"}
	}
	if cfg.Snapshot == nil {
		zones := testZones(tb)
		cfg.Snapshot = func() *zone.Snapshot { return zones }
	}
	cfg.UDPSize = cmp.Or(cfg.UDPSize, wire.UDPSize)
	cfg.RRL.Responses = cmp.Or(cfg.RRL.Responses, 1000)
	cfg.TCP.MaxConns = cmp.Or(cfg.TCP.MaxConns, 4096)
	cfg.TCP.MaxPerClient = cmp.Or(cfg.TCP.MaxPerClient, 128)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return cfg
}

// newHandler returns a handler like that of a UDP socket.
func newHandler(tb testing.TB, cfg Config) *handler {
	tb.Helper()
	cfg = withDefaults(tb, cfg)
	h := &handler{
		settings: cfg.settings(),
		count:    &counters{},
		limiter:  newLimiter(cfg.RRL, 1),
	}
	h.start()
	return h
}

var stranger = client{addr: netip.MustParseAddr("203.0.113.7")}

// ask returns the reply to a message over UDP, or an empty slice.
func ask(h *handler, message []byte) []byte {
	out := make([]byte, h.settings.udpSize)
	return out[:h.answer(message, out, stranger)]
}

func packed(tb testing.TB, m *dns.Msg) []byte {
	tb.Helper()
	b, err := m.Pack()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func unpacked(tb testing.TB, b []byte) *dns.Msg {
	tb.Helper()
	m := new(dns.Msg)
	if err := m.Unpack(b); err != nil {
		tb.Fatalf("reply %x does not parse: %v", b, err)
	}
	return m
}

// question returns a query with ID 1, RD clear and no EDNS.
func question(name string, qtype uint16) *dns.Msg {
	m := new(dns.Msg).SetQuestion(name, qtype)
	m.Id, m.RecursionDesired = 1, false
	return m
}

// withOPT adds EDNS with the given options.
func withOPT(m *dns.Msg, size uint16, options ...dns.EDNS0) *dns.Msg {
	m.SetEdns0(size, false)
	m.IsEdns0().Option = options
	return m
}

// start runs a server until the test ends, and returns its addresses. stop ends it early.
func start(t *testing.T, cfg Config) (addrs []string, stop func()) {
	t.Helper()
	s := listening(t, cfg)
	for _, a := range s.Addrs() {
		addrs = append(addrs, a.String())
	}
	return addrs, run(t, s)
}

// run serves until the test ends or stop is called.
func run(t *testing.T, s *Server) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Run did not end")
		}
	}
	t.Cleanup(stop)
	return stop
}
