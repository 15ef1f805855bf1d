package dnspeer_test

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/publish"
)

// FuzzServe checks that any message of a stranger gets at most one reply, without records, and changes nothing. The
// initial inputs are signed with keys that the server does not have, so that no input of the fuzzer can be valid.
func FuzzServe(f *testing.F) {
	for _, m := range []*dns.Msg{question("example.org.", dns.TypeAXFR), ixfr(7), new(dns.Msg).SetNotify("example.org."),
		new(dns.Msg).SetUpdate("example.org."), question("www.example.org.", dns.TypeA)} {
		m.SetEdns0(1232, false)
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		m.Extra = nil
		wire, _ := signed(f, m, "no-key.", dns.HmacSHA256, time.Now().Unix())
		f.Add(wire)
		f.Add(wire[:len(wire)-3])
		wire, _ = signed(f, m, "old-key.", dns.HmacSHA1, 1)
		f.Add(wire)
	}
	h := newTestServer(f, dnspeer.Config{}, publish.Options{})
	serial := func() uint32 { return h.pub.Snapshot().ZoneOf(apex).Serial() }
	before := serial()
	f.Fuzz(func(t *testing.T, wire []byte) {
		for _, rejected := range []int{0, dns.RcodeFormatError} {
			replies := 0
			err := h.Serve(t.Context(), dnsserver.PeerMessage{Wire: wire, From: stranger, TCP: true, EDNS: rejected == 0,
				Limit: 65535, Rejected: rejected,
				Answer: func([]byte, int) []byte { t.Error("an ordinary answer for a stranger"); return make([]byte, 12) },
				Send: func(b []byte) error {
					replies++
					if len(b) < 12 || b[2]&0x80 == 0 || b[3]&0xF == 0 || b[6]|b[7]|b[8]|b[9] != 0 || new(dns.Msg).Unpack(b) != nil {
						t.Errorf("reply %x", b)
					}
					return nil
				}})
			if err != nil || replies > 1 {
				t.Errorf("%d replies, %v", replies, err)
			}
		}
		if serial() != before {
			t.Error("the zone was changed")
		}
	})
}
