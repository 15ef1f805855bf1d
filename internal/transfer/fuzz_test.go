package transfer

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// FuzzTake checks that any message of a master is read or refused, without a panic.
func FuzzTake(f *testing.F) {
	m := new(dns.Msg).SetAxfr(apexName)
	m.Id, m.Response, m.Compress = 5, true, true
	m.Answer = []dns.RR{mustRR(soaText(7)), mustRR(apexName + " 60 IN NS ns." + apexName), mustRR(a("www", "192.0.2.1")),
		mustRR(soaText(7))}
	for _, id := range []uint16{5, 6} {
		m.Id = id
		raw, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, false)
		f.Add(raw, true)
		f.Add(raw[:len(raw)-3], false)
	}
	apex, has := dnsname.MustParse(apexName), uint32(3)
	f.Fuzz(func(t *testing.T, raw []byte, difference bool) {
		c := &incoming{apex: apex, to: testSpool(t, 1<<20)}
		if difference {
			c.has = &has
		}
		if err := c.addMessage(raw, &verifier{id: 5}); err != nil {
			return
		}
		n := 0
		for r := range c.to.All() {
			if !r.Name.IsIn(apex) {
				t.Errorf("%s is not in the zone", r.Name)
			}
			n++
		}
		if n != c.to.Records() || c.to.Err() != nil {
			t.Errorf("%d of %d records, %v", n, c.to.Records(), c.to.Err())
		}
	})
}
