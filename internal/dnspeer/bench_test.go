package dnspeer_test

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/dnspeer"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// BenchmarkAXFR packs a zone of 100,000 addresses without sending it.
func BenchmarkAXFR(b *testing.B) {
	l := zone.NewLoader(uuid.Nil, apex)
	add := func(n dnsname.Name, t rr.Type, data string) {
		d, err := rr.ParseDataIn(t, data, apex)
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Add(rr.NewSet(n, t, 300, d)); err != nil {
			b.Fatal(err)
		}
	}
	add(apex, rr.TypeSOA, "ns host 1 2 3 4 5")
	add(apex, rr.TypeNS, "ns")
	for i := range 100_000 {
		name := dnsname.MustParse(fmt.Sprintf("host-%06d.example.org.", i))
		add(name, rr.TypeA, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	n := l.Done()
	query, err := question("example.org.", dns.TypeAXFR).Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	bytes := 0
	for b.Loop() {
		bytes = 0
		if err := dnspeer.Pack(query, n, func(msg []byte) error { bytes += len(msg); return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(bytes))
}
