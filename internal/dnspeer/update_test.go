package dnspeer_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

func mustRR(t *testing.T, s string) dns.RR {
	t.Helper()
	r, err := dns.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// updating returns an update of a zone.
func updating(zone string, build func(*dns.Msg)) *dns.Msg {
	m := new(dns.Msg).SetUpdate(zone)
	build(m)
	return m
}

func TestUpdate(t *testing.T) {
	add := func(s string) func(*dns.Msg) { return func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, s)}) } }
	with := func(fns ...func(*dns.Msg)) func(*dns.Msg) {
		return func(m *dns.Msg) {
			for _, f := range fns {
				f(m)
			}
		}
	}
	tests := []struct {
		name  string
		key   string
		m     *dns.Msg
		rcode int
	}{
		{"add", "zone-key.", updating("example.org.", add("new.example.org. 60 A 192.0.2.9")), dns.RcodeSuccess},
		{"with the pool's key", "pool-key.", updating("example.org.", add("new.example.org. 60 A 192.0.2.9")),
			dns.RcodeSuccess},
		{"compressed data", "zone-key.", updating("example.org.", func(m *dns.Msg) {
			m.Insert([]dns.RR{mustRR(t, "new.example.org. 60 MX 10 mail.example.org.")})
			m.Compress = true
		}), dns.RcodeSuccess},
		{"delete a record", "zone-key.", updating("example.org.",
			func(m *dns.Msg) { m.Remove([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.2")}) }), dns.RcodeSuccess},
		{"delete a set", "zone-key.", updating("example.org.",
			func(m *dns.Msg) { m.RemoveRRset([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.2")}) }), dns.RcodeSuccess},
		{"delete a name", "zone-key.", updating("example.org.",
			func(m *dns.Msg) { m.RemoveName([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.2")}) }), dns.RcodeSuccess},
		{"a prerequisite that holds", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.RRsetUsed([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeSuccess},
		{"a set that must exist", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.RRsetUsed([]dns.RR{mustRR(t, "www.example.org. 0 AAAA 2001:db8::1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeNXRrset},
		{"a set that must not exist", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.RRsetNotUsed([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeYXRrset},
		{"a name that must not exist", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.NameNotUsed([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeYXDomain},
		{"a name that must exist", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.NameUsed([]dns.RR{mustRR(t, "none.example.org. 0 A 192.0.2.1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeNameError},
		{"other data than expected", "zone-key.", updating("example.org.", with(
			func(m *dns.Msg) { m.Used([]dns.RR{mustRR(t, "www.example.org. 0 A 192.0.2.1")}) },
			add("new.example.org. 60 A 192.0.2.9"))), dns.RcodeNXRrset},
		{"outside the zone", "zone-key.", updating("example.org.", add("www.example.net. 60 A 192.0.2.9")), dns.RcodeNotZone},
		{"not signed", "", updating("example.org.", add("new.example.org. 60 A 192.0.2.9")), dns.RcodeRefused},
		{"another zone's key", "other-key.", updating("example.org.", add("new.example.org. 60 A 192.0.2.9")),
			dns.RcodeRefused},
		{"no such zone", "zone-key.", updating("example.net.", add("new.example.net. 60 A 192.0.2.9")), dns.RcodeNotAuth},
		{"not of type SOA", "zone-key.", updating("example.org.", func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeA }),
			dns.RcodeFormatError},
	}
	algorithms := map[string]string{"pool-key.": dns.HmacSHA384}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
			h.put("www A 60 192.0.2.1|192.0.2.2")
			before, _ := h.content()
			wire := packed(t, tt.m)
			if tt.key != "" {
				algorithm := algorithms[tt.key]
				if algorithm == "" {
					algorithm = dns.HmacSHA256
				}
				wire, _ = signed(t, tt.m, tt.key, algorithm, time.Now().Unix())
			}
			r := parsed(t, h.ask(friend, false, wire)[0])
			after, _ := h.content()
			if r.Rcode != tt.rcode || r.Opcode != dns.OpcodeUpdate || (after != before) != (tt.rcode == dns.RcodeSuccess) {
				t.Errorf("answered %v, want %s; serial %d, then %d", r, dns.RcodeToString[tt.rcode], before, after)
			}
			if (r.IsTsig() != nil) != (tt.key != "") {
				t.Errorf("TSIG %v", r.IsTsig())
			}
		})
	}
}

// TestUpdateQuota checks that updates with a key respect the quotas of the zone's project.
func TestUpdateQuota(t *testing.T) {
	quotas := publish.Quotas{Zones: -1, ZoneRecordsets: 4, ZoneRecords: -1, RecordsetRecords: 2, APIExportSize: -1}
	h := newTestServer(t, dnspeer.Config{}, publish.Options{Quotas: quotas})
	for i, tt := range []struct {
		what  string
		add   []string
		rcode int
	}{
		{"a set", []string{"a.example.org. 60 A 192.0.2.1"}, dns.RcodeSuccess},
		{"two sets more", []string{"b.example.org. 60 A 192.0.2.1", "c.example.org. 60 A 192.0.2.1"}, dns.RcodeRefused},
		{"two records more", []string{"a.example.org. 60 A 192.0.2.2", "a.example.org. 60 A 192.0.2.3"}, dns.RcodeRefused},
		{"one record more", []string{"a.example.org. 60 A 192.0.2.2"}, dns.RcodeSuccess},
	} {
		m := updating("example.org.", func(m *dns.Msg) {
			for _, s := range tt.add {
				m.Insert([]dns.RR{mustRR(t, s)})
			}
		})
		wire, _ := signed(t, m, "zone-key.", dns.HmacSHA256, time.Now().Unix()+int64(i))
		if r := parsed(t, h.ask(friend, true, wire)[0]); r.Rcode != tt.rcode {
			t.Errorf("%s: %s, want %s", tt.what, dns.RcodeToString[r.Rcode], dns.RcodeToString[tt.rcode])
		}
	}
}

// TestUpdateActor checks that the history has the name of the key.
func TestUpdateActor(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	wire, _ := signed(t,
		updating("example.org.", func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, "a.example.org. 60 A 192.0.2.1")}) }),
		"zone-key.", dns.HmacSHA256, time.Now().Unix())
	h.ask(stranger, true, wire)
	err := h.pub.View(func(v store.View) error {
		return v.Changes(h.zone.ID, 0, func(c store.Change) (bool, error) {
			if c.Actor.Who != "zone-key" || c.Actor.API != "update" {
				t.Errorf("the change was made by %+v", c.Actor)
			}
			return false, nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNotify(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	second := h.addZone(zone.Zone{Name: dnsname.MustParse("second.test."), Kind: zone.Secondary, TTL: 60, Pool: pool,
		Masters: []string{"192.0.2.7:5353", "2001:db8::1"}})
	tests := []struct {
		name     string
		zone     string
		key      string
		rcode    int
		notified bool
	}{
		{"a master", "second.test.", "", dns.RcodeSuccess, true},
		{"a key", "second.test.", "pool-key.", dns.RcodeSuccess, true},
		{"a PRIMARY zone", "example.org.", "", dns.RcodeRefused, false},
		{"no such zone", "none.test.", "", dns.RcodeNotAuth, false},
		{"a stranger", "second.test.", "", dns.RcodeRefused, false},
		{"a stranger with another key", "second.test.", "zone-key.", dns.RcodeRefused, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.notified = nil
			m := new(dns.Msg).SetNotify(tt.zone)
			from, wire := friend, packed(t, m)
			if tt.name != "a master" {
				from = stranger
			}
			switch tt.key {
			case "pool-key.":
				wire, _ = signed(t, m, tt.key, dns.HmacSHA384, time.Now().Unix())
			case "zone-key.":
				wire, _ = signed(t, m, tt.key, dns.HmacSHA256, time.Now().Unix())
			}
			r := parsed(t, h.ask(from, false, wire)[0])
			if r.Rcode != tt.rcode || r.Opcode != dns.OpcodeNotify || r.Authoritative != (tt.rcode == dns.RcodeSuccess) {
				t.Errorf("answered %v, want %s", r, dns.RcodeToString[tt.rcode])
			}
			if want := []uuid.UUID{second.ID}; (len(h.notified) == 1 && h.notified[0] == want[0]) != tt.notified {
				t.Errorf("notified of %v", h.notified)
			}
		})
	}
}
