package follow

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// FuzzRead passes arbitrary messages to a walk. The walk must not panic, must end, and must use only its own records.
func FuzzRead(f *testing.F) {
	name := dnsname.MustParse("cdn.example.net.")
	for _, text := range []string{"cdn.example.net. 60 A 203.0.113.1", "cdn.example.net. 60 CNAME cdn.example.net.",
		`c\.dn.example.net. 1 A 203.0.113.1`} {
		m := query(name, dns.TypeA)
		rec, err := dns.NewRR(text)
		if err != nil {
			f.Fatal(err)
		}
		m.Answer = append(m.Answer, rec)
		wire, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(wire, true)
	}
	f.Fuzz(func(t *testing.T, msg []byte, v4 bool) {
		m := new(dns.Msg)
		if m.Unpack(msg) != nil {
			return
		}
		w := chainWalk{next: name, family: IPv6}
		if v4 {
			w.family = IPv4
		}
		o, done, err := w.read(m)
		if len(w.chain) > wire.MaxChain+1 || err == nil && len(w.chain) > wire.MaxChain {
			t.Fatalf("walked %d CNAMEs", len(w.chain))
		}
		if err != nil && (done || err.Cause == "") {
			t.Fatalf("done = %v with error %+v", done, err)
		}
		if done && (o.answer == Found) != (len(o.addrs) > 0) {
			t.Fatalf("answer %q with addresses %v", o.answer, o.addrs)
		}
		for _, a := range o.addrs {
			if a.Is4() != v4 {
				t.Fatalf("%v is of the wrong family", a)
			}
		}
		if o.ttl < 0 {
			t.Fatalf("ttl %v", o.ttl)
		}
	})
}
