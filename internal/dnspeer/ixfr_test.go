package dnspeer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

func ixfr(serial uint32) *dns.Msg {
	m := new(dns.Msg).SetIxfr("example.org.", serial, "ns.example.org.", "host.example.org.")
	m.RecursionDesired = false
	return m
}

// follow applies the records of an IXFR to an earlier state, as in RFC 1995 §4. It returns the number of steps; 0: the
// answer is the whole zone.
func follow(t *testing.T, c content, recs []dns.RR) (content, int) {
	t.Helper()
	newest := recs[0].(*dns.SOA)
	if len(recs) == 1 {
		return c, 0
	}
	if _, ok := recs[1].(*dns.SOA); !ok {
		_, c := whole(t, recs)
		return c, 0
	}
	c = maps.Clone(c)
	steps, adding := 0, true
	for i, r := range recs[1:] {
		if soa, ok := r.(*dns.SOA); ok {
			adding = !adding
			if !adding && soa.Serial == newest.Serial {
				if i != len(recs)-2 {
					t.Fatalf("%d records after the last SOA", len(recs)-2-i)
				}
				return c, steps
			}
			if !adding {
				steps++
			}
		}
		if c[r.String()] == adding {
			t.Fatalf("record %v exists: %v, and is to be added: %v", r, !adding, adding)
		}
		if adding {
			c[r.String()] = true
		} else {
			delete(c, r.String())
		}
	}
	t.Fatal("the transfer has no end")
	return nil, 0
}

func (h *testServer) randomEdits(r *rand.Rand, n int) {
	h.commit(func(tx *publish.Tx) error {
		for range n {
			name := fmt.Sprintf("h%d", r.IntN(8))
			s := set(h.t, name, "A", uint32(60*(1+r.IntN(2))), fmt.Sprintf("192.0.2.%d", r.IntN(9)),
				fmt.Sprintf("192.0.2.%d", 100+r.IntN(9)))
			s.Zone = h.zone.ID
			_, err := tx.RecordSet(h.zone.ID, s.Name, s.Type)
			switch {
			case err != nil:
				_, err = tx.CreateSet(s)
			case r.IntN(3) == 0:
				err = tx.DeleteSet(h.zone.ID, s.Name, s.Type)
			default:
				_, err = tx.UpdateSet(s)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// TestIXFR updates a copy of every earlier state, over TCP and UDP.
func TestIXFR(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{JournalLimit: 30})
	r := rand.New(rand.NewPCG(5, 6))
	type state struct {
		serial  uint32
		content content
	}
	var states []state
	for range 40 {
		serial, c := h.content()
		states = append(states, state{serial, c})
		h.randomEdits(r, 1+r.IntN(3))
	}
	now, want := h.content()
	for i, s := range states {
		recs := records(t, h.ask(friend, true, packed(t, ixfr(s.serial))))
		got, steps := follow(t, s.content, recs)
		if recs[0].(*dns.SOA).Serial != now || !maps.Equal(got, want) {
			t.Fatalf("state %d: serial %d, want %d (-want +got)\n%s", i, recs[0].(*dns.SOA).Serial, now, cmp.Diff(want, got))
		}
		if wantSteps := len(states) - i; s.serial != now && steps != wantSteps && wantSteps < 30 {
			t.Errorf("state %d: %d differences, want %d", i, steps, wantSteps)
		}
		udp := h.ask(friend, false, packed(t, ixfr(s.serial)))
		recs = records(t, udp)
		if len(udp) != 1 || len(udp[0]) > 1232 {
			t.Fatalf("%d datagrams, the first of %d bytes", len(udp), len(udp[0]))
		}
		if got, _ := follow(t, s.content, recs); len(recs) > 1 && !maps.Equal(got, want) {
			t.Errorf("state %d over UDP (-want +got)\n%s", i, cmp.Diff(want, got))
		} else if len(recs) == 1 && len(states)-i < 3 {
			t.Errorf("state %d over UDP: only the SOA for a difference that fits", i)
		}
	}
}

// TestIXFRSingleSOA checks that a client with our serial, or a later one by RFC 1982, gets only the SOA.
func TestIXFRSingleSOA(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	now, _ := h.content()
	for _, serial := range []uint32{now, now + 1, now + 1<<30} {
		for _, tcp := range []bool{true, false} {
			if recs := records(t, h.ask(friend, tcp, packed(t, ixfr(serial)))); len(recs) != 1 ||
				recs[0].(*dns.SOA).Serial != now {
				t.Errorf("serial %d (now %d): %v", serial, now, recs)
			}
		}
	}
	for _, serial := range []uint32{now - 1, now + 1<<31 + 5, 0} { // older, and not in the journal
		if _, c := whole(t, records(t, h.ask(friend, true, packed(t, ixfr(serial))))); len(c) != 3 {
			t.Errorf("serial %d: %v", serial, c)
		}
		if recs := records(t, h.ask(friend, false, packed(t, ixfr(serial)))); len(recs) != 1 {
			t.Errorf("serial %d over UDP: %v", serial, recs)
		}
	}
}

// TestIXFRIsSmall checks that the change of one address in a large zone takes less than a kilobyte.
func TestIXFRIsSmall(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{}, publish.Options{})
	for i := range 100 {
		h.put(fmt.Sprintf("n%d A 60 192.0.2.1", i))
	}
	h.put("@ A 60 192.0.2.1")
	serial, _ := h.content()
	h.commit(func(tx *publish.Tx) error {
		s := set(t, "@", "A", 60, "192.0.2.2")
		s.Zone = h.zone.ID
		_, err := tx.UpdateSet(s)
		return err
	})
	wire, _ := signed(t, ixfr(serial), "zone-key.", dns.HmacSHA256, time.Now().Unix())
	if got := h.ask(stranger, true, wire); len(got) != 1 || len(got[0]) > 600 {
		t.Errorf("%d messages, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestIXFRMalformed(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	none := question("example.org.", dns.TypeIXFR)
	other := ixfr(1)
	other.Ns = []dns.RR{&dns.NS{Hdr: dns.RR_Header{Name: "example.org.", Rrtype: dns.TypeNS, Class: dns.ClassINET},
		Ns: "ns."}}
	for _, m := range []*dns.Msg{none, other} {
		if r := parsed(t, h.ask(friend, true, packed(t, m))[0]); r.Rcode != dns.RcodeFormatError {
			t.Errorf("reply %v", r)
		}
	}
}

// TestExpiredIsNotTransferred checks that an expired zone is not transferred, whatever serial the client has.
func TestExpiredIsNotTransferred(t *testing.T) {
	h := newTestServer(t, dnspeer.Config{Rules: open}, publish.Options{})
	z := h.addZone(zone.Zone{Name: dnsname.MustParse("copy.test."), Kind: zone.Secondary, TTL: 300,
		Masters: []string{"192.0.2.1"}})
	for _, serial := range []uint32{3_000_000_000, 3_000_000_001} {
		h.commit(func(tx *publish.Tx) error {
			s, err := tx.RecordSet(z.ID, z.Name, rr.TypeSOA)
			if err == nil {
				s.Data = []string{zone.WithSerial(s.Data[0], serial)}
				_, err = tx.UpdateSet(s)
			}
			return err
		})
	}
	ask := new(dns.Msg).SetIxfr("copy.test.", 3_000_000_000, ".", ".")
	if recs := records(t, h.ask(friend, true, packed(t, ask))); len(recs) != 4 {
		t.Fatalf("before: %v", recs)
	}
	h.commit(func(tx *publish.Tx) error { return tx.SetSecondary(z.ID, publish.Secondary{Expired: true}) })
	for _, tcp := range []bool{true, false} {
		if r := parsed(t, h.ask(friend, tcp, packed(t, ask))[0]); r.Rcode != dns.RcodeServerFailure || len(r.Answer) > 0 {
			t.Errorf("TCP %v: %v", tcp, r)
		}
	}
}
