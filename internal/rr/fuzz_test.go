package rr_test

import (
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// samples has data of every type that a zone commonly holds, and of types whose text is difficult.
var samples = []struct{ typ, text string }{
	{"A", "192.0.2.1"}, {"AAAA", "2001:db8::1"}, {"AAAA", "::ffff:192.0.2.1"}, {"AAAA", "::"},
	{"NS", "ns1.example.org."}, {"CNAME", `a\.b\@\032\255.example.org.`}, {"PTR", "."}, {"DNAME", "example.net."},
	{"SOA", "ns1.example.org. hostmaster.example.org. 1 3600 600 86400 300"},
	{"MX", "10 mail.example.org."}, {"SRV", "1 2 443 host.example.org."}, {"TXT", `"" "a;b" "\"\\\009\200"`},
	{"SPF", `"v=spf1 -all"`}, {"HINFO", `"cpu" "os"`}, {"CAA", `128 issue "ca.example.net; a=b"`},
	{"NAPTR", `1 2 "S" "SIP+D2U" "!^.*$!sip:a@example.org!" .`}, {"SSHFP", "1 1 123456789abcdef67890123456789abcdef67890"},
	{"TLSA", "3 1 1 0c72ac70b745ac19998811b131d662c9ac69dbdbe7cb23e5b514b56664c5d3d6"}, {"CERT", "1 2 3 AQID"},
	{"DS", "1 8 2 0c72ac70b745ac19998811b131d662c9ac69dbdbe7cb23e5b514b56664c5d3d6"}, {"DNSKEY", "257 3 8 AQID"},
	{"RRSIG", "A 8 2 300 20300101000000 20200101000000 1 example.org. AQID"}, {"NSEC", "a.example.org. A MX TYPE1234"},
	{"NSEC3", "1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY"}, {"NSEC3PARAM", "1 0 0 -"},
	{"HTTPS", `1 . alpn="h2,h3" port="8443" ipv4hint="192.0.2.1" key65280="\009"`}, {"SVCB", "0 a.example.org."},
	{"LOC", "52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m"}, {"URI", `10 1 "https://example.org/"`},
	{"APL", "1:192.0.2.0/24 !2:2001:db8::/32"}, {"RP", "a.example.org. b.example.org."}, {"KX", "1 kx.example.org."},
	{"AFSDB", "1 afs.example.org."}, {"OPENPGPKEY", "AQID"}, {"EUI48", "00-00-5e-00-53-2a"}, {"CSYNC", "66 3 A NS AAAA"},
	{"ZONEMD", "1 1 1 " +
		"0c72ac70b745ac19998811b131d662c9ac69dbdbe7cb23e5b514b56664c5d3d60c72ac70b745ac19998811b131d662c9"},
	{"TYPE65280", `\# 3 abcdef`}, {"TYPE65280", `\# 0`}, {"NULL", `\# 2 0102`}, {"APL", `\# 0`},
}

func TestSamplesRoundTrip(t *testing.T) {
	for _, s := range samples {
		typ, err := rr.ParseType(s.typ)
		if err != nil {
			t.Fatal(err)
		}
		d, err := rr.ParseData(typ, s.text)
		if err != nil {
			t.Errorf("ParseData(%s, %q): %v", s.typ, s.text, err)
			continue
		}
		roundTrip(t, typ, d)
	}
}

// roundTrip checks that data survives its text and the library's record.
func roundTrip(t *testing.T, typ rr.Type, data string) {
	t.Helper()
	text := rr.DataText(typ, data)
	back, err := rr.ParseData(typ, text)
	if err != nil {
		t.Fatalf("%s data %x has text %q, which does not read back: %v", typ, data, text, err)
	}
	if back != data {
		t.Fatalf("%s data %x has text %q, which reads back as %x", typ, data, text, back)
	}
	if again := rr.DataText(typ, back); again != text {
		t.Fatalf("%s data %x: text %q, then %q", typ, data, text, again)
	}
	rec, err := rr.Unpack(typ, data)
	if err != nil {
		t.Fatalf("Unpack(%s, %x): %v", typ, data, err)
	}
	if got, err := rr.FromRR(rec); err != nil || got != data {
		t.Fatalf("FromRR(Unpack(%s, %x)) = %x, %v", typ, data, got, err)
	}
}

// FuzzData checks that data of any type that Check accepts survives its text and its record.
func FuzzData(f *testing.F) {
	for _, s := range samples {
		typ, _ := rr.ParseType(s.typ)
		d, _ := rr.ParseData(typ, s.text)
		f.Add(uint16(typ), []byte(d))
	}
	for typ := range dns.TypeToRR {
		f.Add(typ, []byte{})
		f.Add(typ, []byte("\x00\x01\x02\x03\xc0\x00"))
	}
	f.Fuzz(func(t *testing.T, typ uint16, data []byte) {
		if !rr.Type(typ).IsData() || len(data) > rr.MaxData || rr.Check(rr.Type(typ), string(data)) != nil {
			return
		}
		roundTrip(t, rr.Type(typ), string(data))
		if text, ok := rr.PlainText(rr.Type(typ), string(data)); ok && text != rr.OtherText(rr.Type(typ), string(data)) {
			t.Fatalf("%s %x is %q, and by the library %q", rr.Type(typ), data, text, rr.OtherText(rr.Type(typ), string(data)))
		}
	})
}

// FuzzText checks that parsed text of any type is valid data and survives.
func FuzzText(f *testing.F) {
	for _, s := range samples {
		typ, _ := rr.ParseType(s.typ)
		f.Add(uint16(typ), s.text)
	}
	f.Add(uint16(rr.TypeTXT), `"never closed`)
	f.Add(uint16(rr.TypeMX), `1(0 a.`)
	f.Fuzz(func(t *testing.T, typ uint16, text string) {
		d, err := rr.ParseData(rr.Type(typ), text)
		if err != nil {
			return
		}
		if err := rr.Check(rr.Type(typ), d); err != nil {
			t.Fatalf("ParseData(%s, %q) = %x, which Check refuses: %v", rr.Type(typ), text, d, err)
		}
		roundTrip(t, rr.Type(typ), d)
	})
}

// FuzzPlain checks that the fast reader of host names agrees with the library on all text that it accepts.
func FuzzPlain(f *testing.F) {
	for _, s := range samples {
		typ, _ := rr.ParseType(s.typ)
		f.Add(uint16(typ), s.text, "example.org.")
	}
	f.Add(uint16(rr.TypeMX), "+1 mail", ".")
	f.Add(uint16(rr.TypeMX), "010  Mail_1.", "test.")
	f.Add(uint16(rr.TypeSRV), "1 2 65536 a", "test.")
	f.Fuzz(func(t *testing.T, typ uint16, text, origin string) {
		in, err := dnsname.Parse(origin)
		if err != nil {
			return
		}
		got, ok := rr.ParsePlain(rr.Type(typ), text, in)
		if !ok {
			return
		}
		if want, err := rr.ParseOther(rr.Type(typ), text, in); err != nil || got != want {
			t.Fatalf("%s %q in %s: %q, and by the library %q, %v", rr.Type(typ), text, in, got, want, err)
		}
	})
}
