package dnspeer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/publish"
)

var open = dnspeer.Rules{Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}

// records returns the records of all replies, which must be messages of one transfer.
func records(t *testing.T, replies [][]byte) []dns.RR {
	t.Helper()
	var out []dns.RR
	for i, b := range replies {
		m := parsed(t, b)
		if m.Rcode != dns.RcodeSuccess || !m.Authoritative || !m.Response || len(m.Question) != 1 || len(m.Answer) == 0 {
			t.Fatalf("message %d of %d: %v", i, len(replies), m)
		}
		out = append(out, m.Answer...)
	}
	return out
}

// whole returns the zone of an AXFR.
func whole(t *testing.T, recs []dns.RR) (uint32, content) {
	t.Helper()
	first, ok := recs[0].(*dns.SOA)
	last, ok2 := recs[len(recs)-1].(*dns.SOA)
	if !ok || !ok2 || len(recs) < 2 || first.String() != last.String() {
		t.Fatalf("from %v to %v", recs[0], recs[len(recs)-1])
	}
	c := content{}
	for _, r := range recs[:len(recs)-1] {
		if c[r.String()] {
			t.Fatalf("%v comes twice", r)
		}
		c[r.String()] = true
	}
	return first.Serial, c
}

func large(t *testing.T, h *testServer) {
	t.Helper()
	for i := range 20 {
		h.put(fmt.Sprintf("t%d TXT 60 %q", i, strings.Repeat("y", 200)))
	}
	for i := range 40 { // sets of many records, some beyond byte 16384 of their message
		var data []string
		for j := range 50 {
			data = append(data, fmt.Sprintf("192.0.2.%d", j))
		}
		h.put(fmt.Sprintf("a-rather-long-label-%d.below A 60 %s", i, strings.Join(data, "|")))
	}
	var long []string
	for range 240 {
		long = append(long, `"`+strings.Repeat("z", 250)+`"`)
	}
	h.put("huge TXT 60 "+strings.Join(long, " "), "mx MX 60 10 ns|20 mail", "c CNAME 60 @",
		"outside CNAME 60 www.example.net.",
		"*.wild A 60 192.0.2.1", `a\.b A 60 192.0.2.2`, "sub NS 60 ns.sub", "ns.sub AAAA 60 2001:db8::1",
		"q SRV 60 0 0 53 ns",
		"type TYPE65300 60 \\# 3 010203")
}

func TestAXFR(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	large(t, h)
	serial, want := h.content()
	got, c := whole(t, records(t, h.ask(friend, true, packed(t, question("example.org.", dns.TypeAXFR)))))
	if diff := cmp.Diff(want, c); got != serial || diff != "" {
		t.Errorf("serial %d, want %d (-want +got)\n%s", got, serial, diff)
	}
}

// TestAXFRIsSmall checks that owners are compressed to the apex and to the previous owner.
func TestAXFRIsSmall(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	var data []string
	for j := range 100 {
		data = append(data, fmt.Sprintf("192.0.2.%d", j))
	}
	h.put("a-rather-long-label-to-be-repeated A 60 " + strings.Join(data, "|"))
	got := h.ask(friend, true, packed(t, question("example.org.", dns.TypeAXFR)))
	if len(got) != 1 || len(got[0]) > 100*16+400 {
		t.Errorf("%d messages, the first of %d bytes", len(got), len(got[0]))
	}
}

// TestAXFRSigned verifies the chain of MACs with another implementation.
func TestAXFRSigned(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	large(t, h)
	for key, algorithm := range map[string]string{"zone-key.": dns.HmacSHA256, "pool-key.": dns.HmacSHA384,
		"sha512-key.": dns.HmacSHA512} {
		wire, mac := signed(t, question("example.org.", dns.TypeAXFR), key, algorithm, time.Now().Unix())
		replies := h.ask(stranger, true, wire)
		if len(replies) < 3 {
			t.Fatalf("%d messages", len(replies))
		}
		for i, b := range replies {
			sig := parsed(t, b).IsTsig()
			if sig == nil {
				t.Fatalf("message %d is not signed", i)
			}
			if err := dns.TsigVerify(b, secret, mac, i > 0); err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			mac = sig.MAC
		}
		_, want := h.content()
		if _, got := whole(t, records(t, replies)); !maps.Equal(want, got) {
			t.Error(cmp.Diff(want, got))
		}
	}
}

// TestWhoMayTransfer checks which addresses and keys may transfer a zone.
func TestWhoMayTransfer(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: dnspeer.Rules{Networks: open.Networks}}, publish.Options{})
	named := newTestServer(t, dnspeer.Config{Rules: dnspeer.Rules{Keys: []dnsname.Name{dnsname.MustParse("other-key.")}}},
		publish.Options{})
	closed := newTestServer(t, dnspeer.Config{}, publish.Options{})
	tests := []struct {
		name  string
		h     *testServer
		from  netip.Addr
		key   string
		zone  string
		rcode int
	}{
		{"nobody by default", closed, friend, "", "example.org.", dns.RcodeRefused},
		{"a network", h, friend, "", "example.org.", dns.RcodeSuccess},
		{"another network", h, stranger, "", "example.org.", dns.RcodeRefused},
		{"the zone's key", closed, stranger, "zone-key.", "example.org.", dns.RcodeSuccess},
		{"another zone's key", closed, stranger, "other-key.", "example.org.", dns.RcodeRefused},
		{"another zone's key that is named", named, stranger, "other-key.", "example.org.", dns.RcodeSuccess},
		{"no such zone", h, friend, "", "example.net.", dns.RcodeNotAuth},
		{"a name in the zone", h, friend, "", "www.example.org.", dns.RcodeNotAuth},
	}
	for _, tt := range tests {
		for _, typ := range []uint16{dns.TypeAXFR, dns.TypeIXFR} {
			t.Run(tt.name+" "+dns.TypeToString[typ], func(t *testing.T) {
				m := question(tt.zone, typ)
				if typ == dns.TypeIXFR {
					m.SetIxfr(tt.zone, 1, "ns.", "host.")
				}
				m.SetEdns0(1232, false)
				wire := packed(t, m)
				if tt.key != "" {
					wire, _ = signed(t, m, tt.key, dns.HmacSHA256, time.Now().Unix())
				}
				r := parsed(t, tt.h.ask(tt.from, true, wire)[0])
				if r.Rcode != tt.rcode || (len(r.Answer) > 0) != (tt.rcode == dns.RcodeSuccess) {
					t.Errorf("reply %v, want %s", r, dns.RcodeToString[tt.rcode])
				}
				if o := r.IsEdns0(); o == nil || (len(o.Option) == 1) != (tt.rcode != dns.RcodeSuccess) {
					t.Errorf("OPT %v", o)
				}
			})
		}
	}
}

func TestAXFROverUDP(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	if r := parsed(t, h.ask(friend, false, packed(t, question("example.org.",
		dns.TypeAXFR)))[0]); r.Rcode != dns.RcodeFormatError || len(r.Answer) > 0 {
		t.Errorf("reply %v", r)
	}
}

// TestAXFRWhileWritersRun checks that every transfer is a committed state.
func TestAXFRWhileWritersRun(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	for i := range 300 { // the sets n and m are always equal
		h.put(fmt.Sprintf("n%d A 60 192.0.2.0", i), fmt.Sprintf("m%d A 60 192.0.2.0", i))
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-stop:
				return
			default:
			}
			i, v := r.IntN(300), r.IntN(250)
			h.commit(func(tx *publish.Tx) error {
				for _, c := range "nm" {
					s := set(t, fmt.Sprintf("%c%d", c, i), "A", 60, fmt.Sprintf("192.0.2.%d", v))
					s.Zone = h.zone.ID
					if _, err := tx.UpdateSet(s); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}()
	for range 30 {
		_, c := whole(t, records(t, h.ask(friend, true, packed(t, question("example.org.", dns.TypeAXFR)))))
		if len(c) != 603 {
			t.Fatalf("%d records", len(c))
		}
		for rec := range c {
			if other := "m" + rec[1:]; rec[0] == 'n' && rec[1] != 's' && !c[other] && !strings.Contains(rec, "\tNS\t") {
				t.Fatalf("%s without %s", rec, other)
			}
		}
	}
	close(stop)
	<-stopped
}
