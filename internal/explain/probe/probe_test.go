package probe_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/simnet"
)

const (
	probed = "192.0.2.1"
	beside = "192.0.2.2"
)

// conduct probes a server and returns the verdicts of each kind, joined with spaces.
func conduct(t *testing.T, p *probe.Prober, server netip.Addr) map[probe.Kind]string {
	t.Helper()
	got := map[probe.Kind]string{}
	for _, r := range p.Probe(t.Context(), dnsname.MustParse("example.org."), server, probe.Kinds) {
		if len(r.Reply) > 0 && (r.Reply[0] != 0 || r.Reply[1] != 0 || r.RTT < 0 || r.At.IsZero() || !r.From.IsValid()) {
			t.Errorf("%s: %+v", r.Kind, r)
		}
		got[r.Kind] = strings.TrimPrefix(got[r.Kind]+" "+string(r.Verdict), " ")
	}
	return got
}

var conducts = []struct {
	name, script string
	want         map[probe.Kind]string // differences from proper behaviour
	silent       bool                  // leaves queries without a reply
}{
	{"proper", "", nil, false},
	{"another source", "source " + beside, map[probe.Kind]string{"source": "no"}, false},
	{"no EDNS", "edns ignore", map[probe.Kind]string{"edns-version": "no", "edns-option": "no", "edns-flag": "no"}, false},
	{"refuses EDNS", "edns formerr", map[probe.Kind]string{"edns-version": "no", "edns-option": "no", "edns-flag": "no"},
		false},
	{"open", "transfers\nresolve " + beside, map[probe.Kind]string{"transfer": "yes", "recursion": "yes"}, false},
	{"too large", "large", map[probe.Kind]string{"size": "no"}, false},
	{"drops what is strange", "edns brittle", map[probe.Kind]string{"edns-version": "no", "edns-option": "no",
		"edns-flag": "no"}, true},
	{"old", "ignorant", map[probe.Kind]string{"types": "no no no", "transfer": "unknown"}, true},
	{"no TCP", "only udp", map[probe.Kind]string{"transfer": "unknown"}, false},
	{"silent", "fault timeout", map[probe.Kind]string{"source": "unknown"}, true},
}

// proper returns the verdicts of a proper server, with differences.
func proper(different map[probe.Kind]string) map[probe.Kind]string {
	if different["source"] == "unknown" {
		return different
	}
	want := map[probe.Kind]string{"source": "yes", "edns-version": "yes", "edns-option": "yes", "edns-flag": "yes",
		"types": "yes yes yes", "size": "yes", "recursion": "no", "transfer": "no"}
	for k, v := range different {
		want[k] = v
	}
	return want
}

func probeNet(script string) *simnet.Net {
	net := simnet.New(1)
	zone := "zone example.org.\nsign example.org.\n"
	for _, host := range strings.Split("abcdefghijklmnopqrst", "") {
		zone += "example.org. 300 NS ns-with-a-long-name-" + host + ".example.org.\n"
	}
	net.MustServer(probed, zone+script)
	net.MustServer(beside, "zone .\n. 60 NS a.root.")
	return net
}

func TestProbe(t *testing.T) {
	for _, tt := range conducts {
		t.Run("memory/"+tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := probeNet(tt.script)
				got := conduct(t, &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket}, netip.MustParseAddr(probed))
				if diff := cmp.Diff(proper(tt.want), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				time.Sleep(time.Minute) // until servers drop queries without a reply
			})
		})
		if tt.silent {
			continue // with real timeouts this takes too long
		}
		t.Run("sockets/"+tt.name, func(t *testing.T) {
			net := probeNet(tt.script)
			sockets, err := net.Listen(0)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- sockets.Run(ctx) }()
			at := sockets.Addrs()[netip.MustParseAddrPort(probed+":53")]
			got := conduct(t, &probe.Prober{Port: at.Port()}, at.Addr())
			if diff := cmp.Diff(proper(tt.want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProbeLoss checks that packet loss never causes a bad verdict.
func TestProbeLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := probeNet("loss 30%")
		p := &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket}
		known := 0
		for range 100 {
			for _, r := range p.Probe(t.Context(), dnsname.MustParse("example.org."), netip.MustParseAddr(probed), probe.Kinds) {
				bad := probe.No
				if r.Kind == probe.Recursion || r.Kind == probe.Transfer {
					bad = probe.Yes
				}
				if r.Verdict == bad {
					t.Fatalf("%s is %s: %s", r.Kind, r.Verdict, r.Detail)
				}
				if r.Verdict != probe.Unknown {
					known++
				}
			}
		}
		if known < 800 { // of 1,100, minus those lost
			t.Errorf("only %d things were found out", known)
		}
		time.Sleep(time.Minute)
	})
}

// TestProbeBefore checks that Before is called for each query, and that no query is sent if it fails.
func TestProbeBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := probeNet("")
		asked, enough := 0, errors.New("enough")
		p := &probe.Prober{Dial: net.Dial, Listen: net.ListenPacket, Before: func(context.Context) error {
			if asked == 1 {
				return enough
			}
			asked++
			return nil
		}}
		for _, r := range p.Probe(t.Context(), dnsname.MustParse("example.org."), netip.MustParseAddr(probed),
			[]probe.Kind{probe.Option}) {
			if r.Kind == probe.Option && (r.Verdict != probe.Unknown || r.Detail != enough.Error()) {
				t.Errorf("got %+v", r)
			}
		}
		if n := len(net.History()); n != 1 {
			t.Errorf("%d queries were sent, want 1", n)
		}
		time.Sleep(time.Minute)
	})
}
