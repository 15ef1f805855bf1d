package dnspeer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// newLoggedServer returns a server that logs to the buffer from level debug.
func newLoggedServer(t *testing.T, opts publish.Options) (*testServer, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	handler := slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})
	return newTestServer(t, dnspeer.Config{Log: slog.New(handler)}, opts), log
}

// addKey adds a key of the zone with limits.
func (h *testServer) addKey(name string, limits map[string]any) {
	h.t.Helper()
	row := map[string]any{"name": name, "algorithm": "hmac-sha256", "secret": secret, "scope": "ZONE",
		"resource_id": h.zone.ID}
	for k, v := range limits {
		row[k] = v
	}
	h.commit(func(tx *publish.Tx) error { return tx.PutObject(store.KindTSIGKey, uuid.NewString(), row) })
}

// extendedError returns the extended error of a reply.
func extendedError(m *dns.Msg) (code int, text string) {
	if opt := m.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return int(e.InfoCode), e.ExtraText
			}
		}
	}
	return -1, ""
}

// counted returns the value of a counter with one label.
func (h *testServer) counted(t *testing.T, name, label string) float64 {
	t.Helper()
	all := prometheus.NewRegistry()
	all.MustRegister(h.Collectors()...)
	families, err := all.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// TestRefusals checks the extended error, the log line and the metric of each kind of refusal.
func TestRefusals(t *testing.T) {
	add := func(s string) func(*dns.Msg) { return func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, s)}) } }
	for _, tt := range []struct {
		name, key string
		zone      string
		build     func(*dns.Msg)
		rcode     int
		ede       int
		text      string
		kind      string
	}{
		{"not signed", "", "example.org.", add("a.example.org. 60 A 192.0.2.1"), dns.RcodeRefused,
			int(dns.ExtendedErrorCodeProhibited), "the update is not signed with a TSIG key", "unsigned"},
		{"unknown key", "nobody.", "example.org.", add("a.example.org. 60 A 192.0.2.1"), dns.RcodeNotAuth,
			int(dns.ExtendedErrorCodeProhibited), "there is no key nobody. with the algorithm hmac-sha256.", "signature"},
		{"another zone's key", "other-key.", "example.org.", add("a.example.org. 60 A 192.0.2.1"), dns.RcodeRefused,
			int(dns.ExtendedErrorCodeProhibited), "key other-key is not for this zone", "key"},
		{"another name", "acme.", "example.org.", add("a.example.org. 60 TXT x"), dns.RcodeRefused,
			int(dns.ExtendedErrorCodeProhibited), "the key may not change the TXT records of a.example.org.", "key"},
		{"another type", "acme.", "example.org.", add("_acme-challenge.example.org. 60 A 192.0.2.1"), dns.RcodeRefused,
			int(dns.ExtendedErrorCodeProhibited), "the key may not change the A records of _acme-challenge.example.org.", "key"},
		{"no such zone", "zone-key.", "example.net.", add("a.example.net. 60 A 192.0.2.1"), dns.RcodeNotAuth,
			int(dns.ExtendedErrorCodeNotAuthoritative), "this server does not have the zone", "zone"},
		{"outside the zone", "zone-key.", "example.org.", add("a.example.net. 60 A 192.0.2.1"), dns.RcodeNotZone,
			int(dns.ExtendedErrorCodeOther), "a.example.net. is not in zone example.org.", "content"},
		{"malformed", "zone-key.", "example.org.", func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeA }, dns.RcodeFormatError,
			int(dns.ExtendedErrorCodeOther), "the zone section must have the type SOA", "content"},
		{"quota", "zone-key.", "example.org.", func(m *dns.Msg) {
			for i := range 3 {
				add(fmt.Sprintf("a.example.org. 60 A 192.0.2.%d", i))(m)
			}
		}, dns.RcodeRefused, int(dns.ExtendedErrorCodeProhibited),
			"Quota exceeded for recordset_records: 3 would be more than 2", "quota"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, log := newLoggedServer(t, publish.Options{Quotas: publish.Quotas{Zones: -1, ZoneRecordsets: -1, ZoneRecords: -1,
				RecordsetRecords: 2, APIExportSize: -1}})
			h.addKey("acme", map[string]any{"names": []string{"_acme-challenge.*"}, "types": []string{"TXT"}})
			for i := range int64(2) {
				m := updating(tt.zone, tt.build)
				m.SetEdns0(1232, false)
				in := packed(t, m)
				if tt.key != "" {
					in, _ = signed(t, m, tt.key, dns.HmacSHA256, time.Now().Unix()+i)
				}
				r := parsed(t, h.ask(friend, false, in)[0])
				if code, text := extendedError(r); r.Rcode != tt.rcode || code != tt.ede || text != tt.text {
					t.Errorf("%s with extended error %d %q, want %s with %d %q", dns.RcodeToString[r.Rcode], code, text,
						dns.RcodeToString[tt.rcode], tt.ede, tt.text)
				}
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), tt.text) {
				t.Errorf("%d warnings, want 1 with the reason:\n%s", n, log)
			}
			if n := h.counted(t, "nameplane_updates_refused_total", tt.kind); n != 2 {
				t.Errorf("%v refusals of kind %s are counted, want 2", n, tt.kind)
			}
		})
	}
}

// TestRefusalsAreLimited checks that many different refusals do not fill the log, nor hide those of another kind.
func TestRefusalsAreLimited(t *testing.T) {
	h, log := newLoggedServer(t, publish.Options{})
	for i := range 200 {
		h.ask(friend, false, packed(t, updating(fmt.Sprintf("z%d.test.", i), func(*dns.Msg) {})))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 20 {
		t.Errorf("%d lines, want 20", n)
	}
	log.Reset()
	wire, _ := signed(t, updating("example.net.", func(*dns.Msg) {}), "zone-key.", dns.HmacSHA256, time.Now().Unix())
	h.ask(friend, false, wire)
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d lines of another kind, want 1", n)
	}
}

// TestUpdateLog checks the audit line of an update, and that a prerequisite that does not hold is no warning.
func TestUpdateLog(t *testing.T) {
	h, log := newLoggedServer(t, publish.Options{})
	send := func(at int64, build func(*dns.Msg)) *dns.Msg {
		wire, _ := signed(t, updating("example.org.", build), "zone-key.", dns.HmacSHA256, time.Now().Unix()+at)
		return parsed(t, h.ask(friend, true, wire)[0])
	}
	send(0, func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, "a.example.org. 60 A 192.0.2.1")}) })
	serial, _ := h.content()
	line := log.String()
	for _, want := range []string{"level=INFO msg=audit method=UPDATE zone=example.org.", `who="key zone-key"`,
		"from=192.0.2.7", "records=1", fmt.Sprintf("serial=%d", serial)} {
		if !strings.Contains(line, want) {
			t.Errorf("the log has no %s: %s", want, line)
		}
	}
	if strings.Contains(line, secret) || strings.Count(line, "\n") != 1 {
		t.Errorf("log %s", line)
	}
	log.Reset()
	r := send(1, func(m *dns.Msg) { m.NameNotUsed([]dns.RR{mustRR(t, "a.example.org. 0 A 192.0.2.1")}) })
	if r.Rcode != dns.RcodeYXDomain || !strings.HasPrefix(strings.SplitN(log.String(), " ", 2)[1], "level=DEBUG") ||
		strings.Count(log.String(), "\n") != 1 {
		t.Errorf("%s, log %s", dns.RcodeToString[r.Rcode], log)
	}
}

// TestSignedErrors checks that a client with a key can verify every error, also of a message that is malformed.
func TestSignedErrors(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	for i, tt := range []struct {
		name     string
		rejected int
		build    func(*dns.Msg)
		rcode    int
	}{
		{"data of a wrong length", 0, func(m *dns.Msg) {
			m.Ns = []dns.RR{&dns.RFC3597{Hdr: dns.RR_Header{Name: "a.example.org.", Rrtype: dns.TypeA, Class: dns.ClassINET},
				Rdata: "c00002"}}
		}, dns.RcodeFormatError},
		{"no zone", dns.RcodeFormatError, func(m *dns.Msg) { m.Question = nil }, dns.RcodeFormatError},
		{"two zones", dns.RcodeFormatError, func(m *dns.Msg) { m.Question = append(m.Question, m.Question[0]) },
			dns.RcodeFormatError},
		{"another version of EDNS", dns.RcodeBadVers, func(m *dns.Msg) { m.SetEdns0(1232, false) }, dns.RcodeBadVers},
	} {
		wire, mac := signed(t, updating("example.org.", tt.build), "zone-key.", dns.HmacSHA256, time.Now().Unix()+int64(i))
		var got []byte
		err := h.Serve(t.Context(), dnsserver.PeerMessage{Wire: wire, From: friend, EDNS: tt.rejected == dns.RcodeBadVers,
			Limit: 1232, Rejected: tt.rejected, Send: func(b []byte) error { got = bytes.Clone(b); return nil }})
		if err != nil || got == nil {
			t.Fatalf("%s: no reply (%v)", tt.name, err)
		}
		r := parsed(t, got)
		if r.Rcode != tt.rcode || r.Opcode != dns.OpcodeUpdate {
			t.Errorf("%s: %v, want %s", tt.name, r, dns.RcodeToString[tt.rcode])
		}
		if err := dns.TsigVerify(got, secret, mac, false); err != nil {
			t.Errorf("%s: the reply does not verify: %v", tt.name, err)
		}
	}
}

// TestLimitedKey checks that a key with limits makes the updates that it may, and cannot transfer or notify.
func TestLimitedKey(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	h.zone = h.addZone(zone.Zone{Name: h.zone.Name.Parent(), Kind: zone.Primary, TTL: 300, Pool: pool})
	h.addKey("acme", map[string]any{"names": []string{"_acme-challenge.*"}, "types": []string{"TXT"}})
	for i, tt := range []struct {
		m     *dns.Msg
		rcode int
	}{
		{updating("org.", func(m *dns.Msg) { m.Insert([]dns.RR{mustRR(t, "_acme-challenge.a.org. 60 TXT x")}) }), 0},
		{updating("org.", func(m *dns.Msg) { m.RemoveRRset([]dns.RR{mustRR(t, "_acme-challenge.a.org. 60 TXT x")}) }), 0},
		{updating("example.org.", func(*dns.Msg) {}), dns.RcodeRefused},
		{question("org.", dns.TypeAXFR), dns.RcodeRefused},
		{question("org.", dns.TypeSOA), 0},
		{new(dns.Msg).SetNotify("org."), dns.RcodeRefused},
	} {
		wire, _ := signed(t, tt.m, "acme.", dns.HmacSHA256, time.Now().Unix()+int64(i))
		if r := parsed(t, h.ask(stranger, true, wire)[0]); r.Rcode != tt.rcode || r.IsTsig() == nil {
			t.Errorf("%v\nanswered %v, want %s", tt.m, r, dns.RcodeToString[tt.rcode])
		}
	}
}
