package explain

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
)

// Selector is the DKIM selector of all trees.
const Selector = "s1"

// addMail adds the text records of mail and the CAA records of a healthy domain. Some domains have only a few. Their
// absence is no fault, so a check that reports it as a warning or worse fails in the healthy trees.
func (t *Tree) addMail(seed uint64) {
	t.seed = seed
	rng := rand.New(rand.NewPCG(seed, 31))
	t.text(t.Domain, pick(rng, "v=spf1 mx -all", "v=spf1 a mx ip4:93.184.0.0/16 ~all", "v=spf1 redirect=_spf."+t.Domain,
		"v=spf1 include:_spf."+t.Domain+" -all", "v=spf1 include:_spf.edge.net ?all", "v=spf1 -all"))
	t.text("_spf."+t.Domain, "v=spf1 a:mail."+t.Domain+" -all")
	t.others[otherAddr] = append(t.others[otherAddr], `_spf.edge.net. 300 TXT "v=spf1 ip4:93.184.2.0/24 -all"`)
	t.text(Selector+"._domainkey."+t.Domain, "v=DKIM1; k=rsa; p="+rsaKey(2048))
	for owner, texts := range map[string][]string{
		"_dmarc":     {"", "v=DMARC1; p=none", "v=DMARC1; p=reject; rua=mailto:d@" + strings.TrimSuffix(t.Domain, ".")},
		"_mta-sts":   {"", "", "v=STSv1; id=20260101000000Z;"},
		"_smtp._tls": {"", "", "v=TLSRPTv1; rua=mailto:tls@example.net"},
	} {
		if text := texts[(seed+uint64(len(owner)))%3]; text != "" {
			t.text(owner+"."+t.Domain, text)
		}
	}
	if data := pick(rng, "", `0 issue "letsencrypt.org"`, `0 issue ";"`,
		`0 issue "letsencrypt.org", 0 issuewild ";", 128 iodef "mailto:caa@example.net"`); data != "" {
		t.add("%s 3600 CAA %s", t.Domain, data)
	}
}

// rsaKey returns a public key with a length, for the tag p of DKIM. The modulus is no product of two primes: only its
// length is judged, and real keys would take most of the time of a tree.
func rsaKey(bits uint) string {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537})
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(der)
}

// quote returns a text as strings of at most 255 bytes.
func quote(text string) string {
	var out []string
	for part := range slices.Chunk([]byte(text), 255) {
		out = append(out, `"`+string(part)+`"`)
	}
	return strings.Join(out, " ")
}

// text replaces the TXT records of a name.
func (t *Tree) text(owner string, texts ...string) {
	t.replace(owner, "TXT", len(texts), func(i int) string { return quote(texts[i]) })
}

// replace replaces the records of a name and type.
func (t *Tree) replace(owner, typ string, n int, data func(int) string) {
	t.records = slices.DeleteFunc(slices.Clone(t.records), func(l string) bool {
		f := strings.Fields(l)
		return f[0] == owner && f[2] == typ
	})
	for i := range n {
		t.add("%s 3600 %s %s", owner, typ, data(i))
	}
}

// variants returns a fault with one of several data for the tree: consecutive seeds have different ones. In the data,
// $ is the domain.
func variants(apply func(t *Tree, data string), data ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		apply(t, strings.ReplaceAll(data[t.seed%uint64(len(data))], "$", t.Domain))
		return true
	}
}

// texts returns a fault that sets the TXT records of a name below the domain. Several texts are separated by " | ".
func texts(label string, data ...string) func(*Tree) bool {
	return variants(func(t *Tree, data string) { t.text(label+t.Domain, strings.Split(data, " | ")...) }, data...)
}

// mx and caa replace the records of the domain; several are separated by commas.
func mx(data ...string) func(*Tree) bool {
	return variants(func(t *Tree, data string) { t.replace(t.Domain, "MX", 1, func(int) string { return data }) }, data...)
}

func caa(data ...string) func(*Tree) bool {
	return variants(func(t *Tree, data string) { t.replace(t.Domain, "CAA", 1, func(int) string { return data }) },
		data...)
}

// mailTags are the tags of mailFaults.
var mailTags = []string{"mx", "txt", "dmarc", "dkim", "sts", "tls", "caa"}

// mailFaults are faults of the records of mail and CAA. Most have five variants or more, because each fault is tried
// alone in five trees.
var mailFaults = []Fault{
	{Name: "a null MX beside others", Want: []string{"MAI01"}, Tags: []string{"mx"},
		Apply: mx("0 ., 10 mail.$", "10 ., 10 mail.$", "0 ., 0 mail.$", "0 ., 10 mail.$, 20 a.dnshost.net.",
			"90 ., 5 mail.$")},
	{Name: "an MX record with an address", Want: []string{"MAI02"}, Tags: []string{"mx"},
		Apply: mx("10 93.184.10.9.", "10 mail.$, 20 93.184.10.9.", "0 23.192.2.1.", "10 10.0.0.1.",
			"5 93.184.10.9., 9 93.184.10.8.")},
	{Name: "an MX record to an alias", Want: []string{"MAI02"}, Tags: []string{"mx"}, Apply: func(t *Tree) bool {
		t.add("mxa.%s 300 CNAME mail.%s", t.Domain, t.Domain)
		t.add("mxb.%s 300 CNAME mxa.%s", t.Domain, t.Domain)
		t.add("mxc.%s 300 CNAME a.dnshost.net.", t.Domain)
		t.add("mxd.%s 300 CNAME gone.edge.net.", t.Domain)
		t.others[otherAddr] = append(t.others[otherAddr], "mxe.edge.net. 300 CNAME a.dnshost.net.")
		return mx("10 mxa.$", "10 mxb.$", "10 mxc.$, 20 mail.$", "10 mxd.$", "10 mxe.edge.net.")(t)
	}},
	{Name: "an MX record to nothing", Want: []string{"MAI02"}, Tags: []string{"mx", "name"}, Apply: func(t *Tree) bool {
		t.text("empty."+t.Domain, "no address")
		return mx("10 gone.$", "10 empty.$", "10 gone.edge.net.", "10 mail.unregistered.com.", "10 mail.$, 20 gone.$")(t)
	}},
	{Name: "several SPF records", Want: []string{"MAI03"}, Tags: []string{"txt"},
		Apply: texts("", "v=spf1 mx -all | v=spf1 a -all", "v=spf1 -all | v=spf1 ~all | v=spf1 ?all",
			"v=spf1 include:_spf.edge.net -all | v=spf1 mx ~all", "V=SPF1 mx -all | v=spf1 a", "x | v=spf1 | v=spf1 mx -all")},
	{Name: "a mistake in the SPF record", Want: []string{"MAI04"}, Tags: []string{"txt"},
		Apply: texts("", "v=spf1 ip4:93.184.10.300 -all", "v=spf1 mx, a -all", "v=spf1 include: -all", "v=spf1; mx -all",
			"v=spf1 ipv4:93.184.10.1 -all", "v=spf1 a:93.184.10.1 -all", "v=spf1 ip4:93.184.10.0/33 -all")},
	{Name: "ptr in the SPF record", Want: []string{"MAI04"}, Tags: []string{"txt"},
		Apply: texts("", "v=spf1 ptr -all", "v=spf1 mx ptr:$ -all", "v=spf1 ?ptr ~all", "v=spf1 PTR", "v=spf1 +ptr mx -all")},
	{Name: "too many SPF lookups", Want: []string{"MAI05"}, Tags: []string{"txt"}, Apply: func(t *Tree) bool {
		six := strings.Repeat("a:mail."+t.Domain+" ", 6)
		t.text("_six."+t.Domain, "v=spf1 "+six+"-all")
		t.text("_more."+t.Domain, "v=spf1 include:_six."+t.Domain+" -all")
		t.others[otherAddr] = append(t.others[otherAddr], `_six.edge.net. 300 TXT "v=spf1 `+six+`-all"`)
		return texts("", "v=spf1 "+six+six+"-all", "v=spf1 include:_six.$ include:_more.$ -all", "v=spf1 include:$ -all",
			"v=spf1 include:_six.$ include:_six.edge.net -all", "v=spf1 "+six+"redirect=_six.edge.net")(t)
	}},
	{Name: "an SPF include without a record", Want: []string{"MAI05"}, Tags: []string{"txt"},
		Apply: texts("", "v=spf1 include:gone.$ -all", "v=spf1 include:mail.$ -all", "v=spf1 redirect=gone.edge.net",
			"v=spf1 mx include:_spf.unregistered.com ~all", "v=spf1 include:_dmarc.$ -all")},
	{Name: "SPF names without records", Want: []string{"MAI05"}, Tags: []string{"txt", "name"},
		Apply: texts("", "v=spf1 a:x.$ a:y.$ a:z.$ -all", "v=spf1 mx:x.$ mx:y.$ a:z.$ -all",
			"v=spf1 a:x.$ mx:mail.$ mx:y.$ -all", "v=spf1 a:x.edge.net a:y.edge.net a:z.edge.net -all",
			"v=spf1 a:_spf.$ a:x.$/24 mx:y.$//64 -all")},
	{Name: "SPF for everyone", Want: []string{"MAI06"}, Tags: []string{"txt"},
		Apply: texts("", "v=spf1 +all", "v=spf1 mx all", "v=spf1 ip4:0.0.0.0/0 -all", "v=spf1 a mx +ALL",
			"v=spf1 ip6:::/0 -all")},
	{Name: "no SPF record", Want: []string{"MAI07"}, Tags: []string{"txt", "mx", "dmarc"},
		Apply: func(t *Tree) bool {
			t.text("_dmarc."+t.Domain, "v=DMARC1; p=none") // MAI07 is about DMARC too
			return texts("", "x", "site=1 | other=2", "v=spf2.0 mx", "spf2.0/pra mx -all", "v=spf10")(t)
		},
		Twin: texts("_dmarc.", "v=DMARC1; p=none")},
	{Name: "a mistake in the DMARC record", Want: []string{"MAI08"}, Tags: []string{"dmarc"},
		Apply: texts("_dmarc.", "v=DMARC1; p=block", "v=DMARC1; rua=mailto:a@example.net", "v=DMARC1 p=none",
			"p=none; v=DMARC1", "v=DMARC1; p=none | v=DMARC1; p=reject", "v=DMARC1; p=none; rua=a.example.net",
			"v=dmarc1; p=none")},
	{Name: "a bad DKIM key", Want: []string{"MAI09"}, Tags: []string{"dkim"},
		Apply: texts(Selector+"._domainkey.", "v=DKIM1; p=", "v=DKIM1; k=rsa", "v=DKIM1; p="+rsaKey(512),
			"k=rsa; p="+rsaKey(1024), "v=DKIM1; p="+rsaKey(2048)[:200], "v=DKIM2; p="+rsaKey(2048),
			"v=DKIM1; p= | v=DKIM1; k=rsa; p=")},
	{Name: "no DKIM key", Want: []string{"MAI09"}, Tags: []string{"dkim"}, Apply: func(t *Tree) bool {
		t.replace(Selector+"._domainkey."+t.Domain, "TXT", 0, nil)
		return true
	}},
	{Name: "a mistake in the MTA-STS record", Want: []string{"MAI10"}, Tags: []string{"sts"},
		Apply: texts("_mta-sts.", "v=STSv1", "v=STSv1; id=2026-01-01", "v=STSv1; id=1 | v=STSv1; id=2", "v=stsv1; id=1",
			"v=STSv1 id=1")},
	{Name: "a mistake in the record for TLS reports", Want: []string{"MAI11"}, Tags: []string{"tls"},
		Apply: texts("_smtp._tls.", "v=TLSRPTv1", "v=TLSRPTv1; rua=tls.example.net", "v=TLSRPTv1 rua=mailto:a@example.net",
			"v=TLSRPTv1; rua=http://example.net/", "v=TLSRPTv1; rua=mailto:a | v=TLSRPTv1; rua=mailto:b")},
	{Name: "a mistake in a CAA record", Want: []string{"MAI12"}, Tags: []string{"caa"},
		Apply: caa(`0 issuer "letsencrypt.org"`, `128 tbs "x"`, `0 issue "https://letsencrypt.org"`,
			`0 issue "letsencrypt.org", 0 iodef "caa.example.net"`, `0 issue "letsencrypt.org digicert.com"`,
			`0 issue ";", 0 issue "letsencrypt.org"`, `2 issue "letsencrypt.org"`)},
}
