package dnspeer_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/publish"
)

// refusedReplays returns the metric that counts replays.
func refusedReplays(t *testing.T, h *testServer) (n float64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(h.Collectors()...)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "nameplane_tsig_refused_total" && m.GetLabel()[0].GetValue() == "replay" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// TestReplayedUpdate records the update that adds a name, and sends it again after the name was deleted: at once,
// later, with another message ID, over TCP and after a restart. The name stays deleted.
func TestReplayedUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestServer(t, dnspeer.Config{}, publish.Options{})
		record := []dns.RR{mustRR(t, "a.example.org. 60 A 192.0.2.1")}
		add, mac := signed(t, updating("example.org.", func(m *dns.Msg) { m.Insert(record) }), "zone-key.", dns.HmacSHA256,
			time.Now().Unix())
		remove, _ := signed(t, updating("example.org.", func(m *dns.Msg) { m.RemoveRRset(record) }), "zone-key.",
			dns.HmacSHA256, time.Now().Unix())
		for _, wire := range [][]byte{add, remove} {
			if r := parsed(t, h.ask(friend, false, wire)[0]); r.Rcode != dns.RcodeSuccess {
				t.Fatalf("answered %v", r)
			}
		}
		renumbered := append([]byte(nil), add...)
		renumbered[0] ^= 0xFF
		replay := func(name string, tcp bool, wire []byte) {
			t.Helper()
			r := parsed(t, h.ask(stranger, tcp, wire)[0])
			s := r.IsTsig()
			if r.Rcode != dns.RcodeNotAuth || s == nil || s.Error != dns.RcodeBadTime || s.OtherLen != 6 {
				t.Fatalf("%s: answered %v, want NOTAUTH with BADTIME", name, r)
			}
			if _, want, err := dns.TsigGenerate(r, secret, mac, false); err != nil || s.MAC != want {
				t.Errorf("%s: the MAC is %s, want %s (%v)", name, s.MAC, want, err)
			}
			if _, have := h.content(); have[record[0].String()] {
				t.Errorf("%s: the deleted record is back", name)
			}
		}
		replay("at once", false, add)
		replay("over TCP", true, add)
		replay("with another ID", false, renumbered)
		time.Sleep(time.Minute)
		replay("later", false, add)
		if n := refusedReplays(t, h); n != 4 {
			t.Errorf("%v replays were counted, want 4", n)
		}
		h.Server = dnspeer.New(h.cfg)
		replay("after a restart", false, add)
		time.Sleep(4 * time.Minute)
		replay("after all", false, add)
	})
}

// TestReplayedUpdateAfterRestart signs one update in the second of the restart and one for a later time, and sends both
// again after the restart. A newer update must be accepted.
func TestReplayedUpdateAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestServer(t, dnspeer.Config{}, publish.Options{})
		for _, ahead := range []int64{0, 100} {
			add := func(name string, ahead int64) []byte {
				m := updating("example.org.", func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, name+" 60 A 192.0.2.1")}) })
				wire, _ := signed(t, m, "zone-key.", dns.HmacSHA256, time.Now().Unix()+ahead)
				return wire
			}
			recorded := add("a.example.org.", ahead)
			for i, want := range []int{dns.RcodeSuccess, dns.RcodeNotAuth} {
				if r := parsed(t, h.ask(friend, false, recorded)[0]); r.Rcode != want {
					t.Errorf("%d s ahead, time %d: answered %v", ahead, i, r)
				}
				h.Server = dnspeer.New(h.cfg)
			}
			if r := parsed(t, h.ask(friend, false, add("b.example.org.", ahead+1))[0]); r.Rcode != dns.RcodeSuccess {
				t.Errorf("%d s ahead: a newer update was answered %v", ahead, r)
			}
		}
	})
}

// TestFudgeIsBounded signs with the largest possible fudge: it does not make a message valid for 18 hours.
func TestFudgeIsBounded(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	for _, tt := range []struct {
		late int64
		want int
	}{{299, dns.RcodeSuccess}, {-299, dns.RcodeSuccess}, {302, dns.RcodeNotAuth}, {-302, dns.RcodeNotAuth},
		{3600, dns.RcodeNotAuth}} {
		m := question("example.org.", dns.TypeSOA)
		m.SetTsig("zone-key.", dns.HmacSHA256, 65535, time.Now().Unix()-tt.late)
		wire, _, err := dns.TsigGenerate(m, secret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		if r := parsed(t, h.ask(stranger, false, wire)[0]); r.Rcode != tt.want {
			t.Errorf("signed %d s ago: answered %v, want %s", tt.late, r, dns.RcodeToString[tt.want])
		}
	}
}
