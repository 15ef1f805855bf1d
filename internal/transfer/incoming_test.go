package transfer

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/wire"
)

// TestIncoming adds records in all orders. "N" is the SOA of serial N; other words are addresses of names.
func TestIncoming(t *testing.T) {
	tests := []struct {
		name    string
		records string
		has     uint32 // 0: the whole zone is requested
		want    string // "whole", "difference", "more", or the beginning of an error
	}{
		{"whole", "9 a b 9", 0, "whole"},
		{"whole instead of a difference", "9 a b 9", 7, "whole"},
		{"whole, and nothing in it", "9 9", 0, "whole"},
		{"not at its end", "9 a b", 0, "more"},
		{"only the first SOA", "9", 0, "more"},
		{"a difference", "9 7 a 9 b 9", 7, "difference"},
		{"in two steps", "9 7 a 8 b 8 b 9 c 9", 7, "difference"},
		{"steps that remove nothing", "9 7 8 b 8 9 c 9", 7, "difference"},
		{"no end", "9 7 a 9 b", 7, "more"},
		{"from another serial than ours", "9 6 a 9 b 9", 7, "the records of the transfer are out of order"},
		{"steps that do not meet", "9 7 a 8 b 7 a 9 c 9", 7, "the records of the transfer are out of order"},
		{"begins with something else", "a 9 b 9", 0, "the records of the transfer are out of order"},
		{"something behind the end", "9 a 9 b", 0, "the records of the transfer are out of order"},
		{"another SOA at the end", "9 a 8", 0, "the records of the transfer are out of order"},
		{"a name outside", "9 out 9", 0, "the transfer has a record that cannot be in the zone"},
		{"another class", "9 chaos 9", 0, "the transfer has a record that cannot be in the zone"},
		{"an SOA below the apex", "9 soa 9", 0, "the transfer has a record that cannot be in the zone"},
		{"an OPT", "9 opt 9", 0, "the transfer has a record that cannot be in the zone"},
	}
	special := map[string]dns.RR{"out": mustRR("www.example.org. 60 IN A 192.0.2.1"),
		"chaos": mustRR("x." + apexName + " 60 CH TXT x"),
		"soa":   mustRR("x." + apexName + " 60 IN SOA a. b. 9 1 1 1 1"),
		"opt":   &dns.OPT{Hdr: dns.RR_Header{Name: apexName, Rrtype: dns.TypeOPT, Class: dns.ClassINET}}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &incoming{apex: dnsname.MustParse(apexName), to: testSpool(t, 1<<20)}
			if tt.has != 0 {
				c.has = &tt.has
			}
			got := ""
			for _, w := range strings.Fields(tt.records) {
				rec := special[w]
				if rec == nil && w[0] <= '9' {
					rec = mustRR(soaText(uint32(w[0] - '0')))
				} else if rec == nil {
					rec = mustRR(a(w, "192.0.2.1"))
				}
				if err := c.add(rec); err != nil {
					got = err.Error()
					break
				}
			}
			switch {
			case got != "":
			case !c.done:
				got = "more"
			case c.whole:
				got = "whole"
			default:
				got = "difference"
			}
			if !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestVerifier checks that unsigned answers are refused, except some messages between signed ones, which the next
// signature covers.
func TestVerifier(t *testing.T) {
	const secret = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="
	message := func(text string) *dns.Msg {
		m := new(dns.Msg).SetQuestion(apexName, dns.TypeAXFR)
		m.Id, m.Response = 5, true
		m.Answer = []dns.RR{mustRR(apexName + " 60 IN TXT " + text)}
		return m
	}
	sign := func(m *dns.Msg, mac string, timers bool) ([]byte, string) {
		m.SetTsig("k.", dns.HmacSHA256, 300, 0)
		m.IsTsig().TimeSigned = 0 // means now
		signed, mac, err := dns.TsigGenerate(m, secret, mac, timers)
		if err != nil {
			t.Fatal(err)
		}
		return signed, mac
	}
	check := func(v *verifier, raw []byte) error { return v.verify(append([]byte(nil), raw...)) }
	asked, _ := new(dns.Msg).SetQuestion(apexName, dns.TypeAXFR).Pack()
	var query string // MAC of the query
	asking := func(id uint16, secret string) *verifier {
		raw, _ := base64.StdEncoding.DecodeString(secret)
		c := &wire.TSIGChain{Key: wire.TSIGKey{Name: dnsname.MustParse("k."), Algorithm: dnsname.MustParse("hmac-sha256."),
			Secret: raw}}
		signed, _ := wire.ReadTSIG(c.Sign(asked, wire.TSIG{}))
		query = hex.EncodeToString(signed.MAC)
		return &verifier{id: id, chain: c}
	}
	v := asking(5, secret)
	first, mac := sign(message("one"), query, false)
	second, _ := sign(message("two"), mac, true)
	plain, _ := message("plain").Pack()

	for i, raw := range [][]byte{first, second} {
		if err := check(v, raw); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if v.end() != nil {
		t.Error("signed to the end, and not believed")
	}
	if check(v, plain) != nil || v.end() == nil {
		t.Error("a transfer that ends without a signature is believed")
	}
	if check(asking(5, secret), plain) == nil {
		t.Error("a first message without a signature is believed")
	}
	if check(asking(6, secret), first) == nil {
		t.Error("the answer to another question is believed")
	}
	if check(asking(5, "d3Jvbmc="), first) == nil {
		t.Error("a wrong MAC is believed")
	}
	v = asking(5, secret)
	if check(v, first) != nil || check(v, plain) != nil || check(v, second) == nil {
		t.Error("a message was put in between, and the next signature is believed")
	}
	m := message("three")
	m.SetTsig("k.", dns.HmacSHA256, 300, 0)
	m.IsTsig().TimeSigned = 0
	third, _, err := dns.TsigGenerateWithProvider(m, covering{secret, 2 + len(mac)/2, plain}, mac, true)
	v = asking(5, secret)
	if err != nil || check(v, first) != nil || check(v, plain) != nil || check(v, third) != nil || v.end() != nil {
		t.Errorf("a signature that covers two messages is not believed (%v)", err)
	}
	v = asking(5, secret)
	err = check(v, first)
	for range maxUnsigned {
		if err == nil {
			err = check(v, plain)
		}
	}
	if err != nil || check(v, plain) == nil {
		t.Errorf("a hundred messages without a signature are believed, or fewer are not: %v", err)
	}
}

// covering signs a message together with the one before it.
type covering struct {
	secret string
	at     int
	before []byte
}

func (c covering) Generate(msg []byte, _ *dns.TSIG) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(c.secret)
	m := hmac.New(sha256.New, key)
	m.Write(msg[:c.at])
	m.Write(c.before)
	m.Write(msg[c.at:])
	return m.Sum(nil), err
}

func (covering) Verify([]byte, *dns.TSIG) error { return nil }
