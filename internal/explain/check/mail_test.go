package check_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

const caa = rr.Type(257)

// found returns a lookup with an answer, or without records if data is empty.
func found(owner string, t rr.Type, data ...string) explain.Lookup {
	l := explain.Lookup{Question: ask(owner, t), Result: iterate.Answer, TTL: 300, Data: data, Evidence: []int{}}
	if len(data) == 0 {
		l.Result, l.TTL = iterate.NoData, 0
	}
	return l
}

// mail returns the records of mail of a healthy domain.
func mail() []explain.Lookup {
	return []explain.Lookup{
		found("example.org", rr.TypeMX, "10 mail.example.org.", "20 mx.example.net."),
		found("example.org", rr.TypeTXT, `"v=spf1 mx a:mail.example.org include:_spf.example.net ip4:192.0.2.0/24 -all"`,
			`"site-verification=abc"`),
		found("example.org", caa, `0 issue "letsencrypt.org; validationmethods=dns-01"`, `0 issuewild ";"`,
			`128 iodef "mailto:security@example.org"`),
		found("_dmarc.example.org", rr.TypeTXT, `"v=DMARC1; p=quarantine; rua=mailto:d@example.org!10m; pct=50"`),
		found("_mta-sts.example.org", rr.TypeTXT, `"v=STSv1; id=20260101T000000;"`),
		found("_smtp._tls.example.org", rr.TypeTXT, `"v=TLSRPTv1;rua=mailto:t@example.org,https://example.org/tls"`),
		found("s1._domainkey.example.org", rr.TypeTXT, `"v=DKIM1; k=rsa; `+rsaKey(2048)+`"`),
		found("mail.example.org", rr.TypeA, "192.0.2.25"),
		found("mx.example.net", rr.TypeA),
		found("mx.example.net", rr.TypeAAAA, "2001:db8::25"),
		found("_spf.example.net", rr.TypeTXT, `"v=spf1 exists:%{i}._spf.example.net ~all"`),
	}
}

// rsaKey returns the tag of a key with a length.
func rsaKey(bits uint) string {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	der, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 65537})
	if err != nil {
		panic(err)
	}
	key := base64.StdEncoding.EncodeToString(der)
	return "p=" + key[:len(key)/2] + `" "` + key[len(key)/2:] // a string of a TXT record has at most 255 bytes
}

// put returns a story that replaces the records of a name. Without data it has none.
func put(owner string, t rr.Type, data ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for i, l := range f.Mail {
			if l.Question == ask(owner, t) {
				f.Mail[i] = found(owner, t, data...)
				return
			}
		}
		f.Mail = append(f.Mail, found(owner, t, data...))
	}
}

// putAll combines stories.
func putAll(all ...func(*explain.Facts)) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for _, with := range all {
			with(f)
		}
	}
}

// unclear returns a story in which the records of a name are not known.
func unclear(owner string, t rr.Type) func(*explain.Facts) {
	return func(f *explain.Facts) {
		put(owner, t)(f)
		for i, l := range f.Mail {
			if l.Question == ask(owner, t) {
				f.Mail[i].Result = iterate.Unknown
			}
		}
	}
}

// spf returns a story with an SPF record.
func spf(terms string) func(*explain.Facts) {
	return put("example.org", rr.TypeTXT, `"v=spf1 `+terms+`"`)
}

func mailStories() []story {
	all := append(exchangerStories(), spfStories()...)
	all = append(all, formStories()...)
	for _, x := range []struct {
		id, owner string
		t         rr.Type
	}{
		{"MAI01", "example.org", rr.TypeMX}, {"MAI02", "example.org", rr.TypeMX}, {"MAI03", "example.org", rr.TypeTXT},
		{"MAI04", "example.org", rr.TypeTXT}, {"MAI05", "_spf.example.net", rr.TypeTXT}, {"MAI06", "example.org", rr.TypeTXT},
		{"MAI07", "_dmarc.example.org", rr.TypeTXT}, {"MAI08", "_dmarc.example.org", rr.TypeTXT},
		{"MAI09", "s1._domainkey.example.org", rr.TypeTXT}, {"MAI10", "_mta-sts.example.org", rr.TypeTXT},
		{"MAI11", "_smtp._tls.example.org", rr.TypeTXT}, {"MAI12", "example.org", caa},
	} {
		all = append(all, story{x.id, "good", nil, "pass", ""},
			story{x.id, "not known", unclear(x.owner, x.t), "unknown", ""},
			story{x.id, "not asked", func(f *explain.Facts) { f.Mail = nil }, "", ""})
	}
	return all
}

func exchangerStories() []story {
	mx := func(data ...string) func(*explain.Facts) { return put("example.org", rr.TypeMX, data...) }
	bare := func(f *explain.Facts) {
		put("example.org", rr.TypeMX)(f)
		put("example.org", rr.TypeTXT)(f)
		put("_dmarc.example.org", rr.TypeTXT)(f)
	}
	return []story{
		{"MAI01", "null beside another", mx("0 .", "10 mail.example.org."), "fail error", "mail.example.org"},
		{"MAI01", "null alone", mx("0 ."), "pass", "receives no mail"},
		{"MAI01", "no mail", bare, "", ""},
		{"MAI02", "address", mx("10 192.0.2.25."), "fail error", "has the address 192.0.2.25"},
		{"MAI02", "missing", putAll(mx("10 gone.example.org."), func(f *explain.Facts) {
			l := found("gone.example.org", rr.TypeA)
			l.Result = iterate.NXDomain
			f.Mail = append(f.Mail, l)
		}), "fail error", "gone.example.org, which does not exist"},
		{"MAI02", "no address", put("mx.example.net", rr.TypeAAAA), "fail error", "mx.example.net, which has no address"},
		{"MAI02", "alias", func(f *explain.Facts) { f.Mail[7].Alias = name("host.example.net") }, "fail warning",
			"alias of host.example.net"},
		{"MAI02", "one not asked", mx("10 mail.example.org.", "20 other.example.net."), "unknown", "other.example.net"},
		{"MAI02", "null", mx("0 ."), "", ""},
		{"MAI07", "no SPF", put("example.org", rr.TypeTXT, `"hello"`), "fail notice", "no SPF record"},
		{"MAI07", "no DMARC", put("_dmarc.example.org", rr.TypeTXT), "fail notice", "no DMARC record"},
		{"MAI07", "DMARC of a wildcard", put("_dmarc.example.org", rr.TypeTXT, `"v=spf1 -all"`), "fail notice", "no DMARC"},
		{"MAI07", "no mail", bare, "", ""},
		{"MAI07", "null", putAll(bare, mx("0 .")), "", ""},
	}
}

func spfStories() []story {
	many := func(n int) string { return strings.TrimSpace(strings.Repeat("a:mail.example.org ", n)) + " -all" }
	next := func(data ...string) func(*explain.Facts) { return put("_spf.example.net", rr.TypeTXT, data...) }
	out := []story{
		{"MAI03", "two", put("example.org", rr.TypeTXT, `"v=spf1 mx -all"`, `"v=spf1 -all"`), "fail error", "2 SPF records"},
		{"MAI03", "none", put("example.org", rr.TypeTXT, `"v=spf10 other"`, `"spf2.0/pra -all"`), "", ""},
		{"MAI04", "ptr", spf("ptr -all"), "fail notice", "deprecated"},
		{"MAI04", "version with semicolon", put("example.org", rr.TypeTXT, `"v=spf1; a -all"`), "fail error", "no SPF"},
		{"MAI04", "space before the version", put("example.org", rr.TypeTXT, `" v=spf1 a -all"`), "fail error", "no SPF"},
		{"MAI04", "joined strings", put("example.org", rr.TypeTXT, `"v=spf1 a" "mx -all"`), "fail error", `"amx"`},
		{"MAI05", "ten", spf(many(10)), "pass", "10 lookups of at most 10"},
		{"MAI05", "eleven", spf(many(11)), "fail error", "at least 11 lookups"},
		{"MAI05", "terms after all", spf("-all " + many(11)), "pass", ""},
		{"MAI05", "includes", putAll(spf("include:_spf.example.net "+many(9)), next(`"v=spf1 mx -all"`)), "fail error", "11"},
		{"MAI05", "redirect", putAll(spf("redirect=_spf.example.net"), next(`"v=spf1 `+many(10)+`"`)), "fail error", "11"},
		{"MAI05", "loop", spf("include:example.org -all"), "fail error", "11"},
		{"MAI05", "include without record", next(`"hello"`), "fail error", "_spf.example.net, which it includes, has no SPF"},
		{"MAI05", "include of two", next(`"v=spf1 a"`, `"v=spf1 mx"`), "fail error", "several SPF records"},
		{"MAI05", "include with a mistake", next(`"v=spf1 foo"`), "fail error", "is not valid"},
		{"MAI05", "macro", spf("include:%{d}.example.net -all"), "unknown", "%{d}.example.net"},
		{"MAI05", "void", putAll(spf("a:x.example.org a:y.example.org mx:z.example.org -all"),
			put("x.example.org", rr.TypeA), put("x.example.org", rr.TypeAAAA), put("z.example.org", rr.TypeMX),
			put("y.example.org", rr.TypeA), put("y.example.org", rr.TypeAAAA)), "fail warning", "have no records"},
		{"MAI05", "two voids", putAll(spf("a:x.example.org a:mail.example.org mx:z.example.org -all"),
			put("x.example.org", rr.TypeA), put("x.example.org", rr.TypeAAAA), put("z.example.org", rr.TypeMX)), "pass", ""},
		{"MAI06", "all", spf("mx all"), "fail warning", `"all"`},
		{"MAI06", "+all", spf("mx +all"), "fail warning", `"+all"`},
		{"MAI06", "whole internet", spf("ip4:0.0.0.0/0 -all"), "fail warning", `"ip4:0.0.0.0/0"`},
		{"MAI06", "neutral", spf("mx ?all"), "pass", ""},
	}
	for _, bad := range []string{"foo", "a:", "a:host", "a:192.0.2.1", "a/33", "a/24/64", "ip4:192.0.2.300",
		"ip4:2001:db8::1", "ip6:192.0.2.1", "ip4:192.0.2.0/33", "ip4:", "include", "include:", "all:x", "-all,",
		"redirect=", "exists", "ptr:",
		"a:%{z}.example.org", "a:%.example.org", "redirect=a.example.org redirect=b.example.org", "mx\\009a",
		"ip4=192.0.2.1 =x"} {
		out = append(out, story{"MAI04", bad, spf(bad), "fail error", "not valid"})
	}
	for _, good := range []string{"", "a/24//64", "mx//64", "A:Mail.Example.ORG -ALL", "ip6:2001:db8::/32",
		"a:_x.example.org.", "exists:%{ir}.%{l1r-}.%{d2}", "exp=explain.%{d}", "other=thing/%{s}",
		"include:a.example-net", "  a   mx  "} {
		out = append(out, story{"MAI04", "good " + good, spf(good), "pass", ""})
	}
	return out
}

func formStories() (out []story) {
	const dmarc, sts, tls = "_dmarc.example.org", "_mta-sts.example.org", "_smtp._tls.example.org"
	for i, bad := range []struct{ id, owner, severity, data, says string }{
		{"MAI08", dmarc, "error", "v=DMARC1", "no tag"},
		{"MAI08", dmarc, "error", "v=DMARC1; rua=mailto:a@example.org", "policy"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=block", "block"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=none; p=reject", "twice"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=none; pct=101", "101"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=none; rua=a@example.org", "mailto"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=none; rua=mailto:example.org", "mail address"},
		{"MAI08", dmarc, "error", "v=DMARC1; p=none; adkim=x", "adkim"},
		{"MAI08", dmarc, "error", "v=DMARC1; p", "not a tag"},
		{"MAI08", dmarc, "error", "v=DMARC1;; p=none", "two semicolons"},
		{"MAI08", dmarc, "error", "v=DMARC1, p=none", "ignore"},
		{"MAI08", dmarc, "error", "v=dmarc1; p=none", "ignore"},
		{"MAI08", dmarc, "error", "p=none; v=DMARC1", "ignore"},
		{"MAI10", sts, "warning", "v=STSv1", "id"},
		{"MAI10", sts, "warning", "v=STSv1; id=2026-01-01", "id"},
		{"MAI10", sts, "warning", "v=STSv1; id=" + strings.Repeat("1", 33), "id"},
		{"MAI10", sts, "warning", "v=STSv1 id=1", "ignore"},
		{"MAI10", sts, "warning", "v=stsv1; id=1", "ignore"},
		{"MAI11", tls, "warning", "v=TLSRPTv1", "rua"},
		{"MAI11", tls, "warning", "v=TLSRPTv1; rua=t@example.org", "mailto"},
		{"MAI11", tls, "warning", "v=TLSRPTv1; rua=http://example.org/", "https"},
		{"MAI11", tls, "warning", "v=TLSRPTv1; ruf=mailto:t@example.org", "rua"},
		{"MAI11", tls, "warning", "v=TLSRPT1v1; rua=mailto:t@example.org v=TLSRPTv1", "ignore"},
	} {
		out = append(out, story{bad.id, fmt.Sprint("bad ", i), put(bad.owner, rr.TypeTXT, `"`+bad.data+`"`),
			"fail " + bad.severity, bad.says})
	}
	out = append(out,
		story{"MAI08", "two", put(dmarc, rr.TypeTXT, `"v=DMARC1; p=none"`, `"v=DMARC1; p=reject"`), "fail error", "2 DMARC"},
		story{"MAI10", "two", put(sts, rr.TypeTXT, `"v=STSv1; id=1"`, `"v=STSv1; id=2"`), "fail warning", "2 MTA-STS"},
		story{"MAI08", "text of a wildcard", put(dmarc, rr.TypeTXT, `"v=spf1 -all"`), "", ""},
		story{"MAI10", "text of a wildcard", put(sts, rr.TypeTXT, `"v=spf1 -all"`), "", ""},
		story{"MAI11", "text of a wildcard", put(tls, rr.TypeTXT, `"v=spf1 -all"`), "", ""},
		story{"MAI08", "spaces", put(dmarc, rr.TypeTXT, `"v = DMARC1 ; p = none ;"`), "pass", ""})
	return append(append(out, dkimStories()...), caaStories()...)
}

// TestLongTexts checks that records of the largest size give short sentences.
func TestLongTexts(t *testing.T) {
	part := strings.Repeat("x", 250)
	long := strings.Repeat(`"`+part+`" `, 200)
	f := healthy()
	f.Kind = explain.Scan
	for _, with := range []func(*explain.Facts){
		put("example.org", rr.TypeTXT, `"v=spf1 include:%{d}." `+long), put("example.org", rr.TypeTXT, `"v=spf1 a:" `+long),
		put("example.org", rr.TypeTXT, `"v=spf1 include:" `+long+`".example"`),
		put("_dmarc.example.org", rr.TypeTXT, `"v=DMARC1; p=" `+long),
		put("_dmarc.example.org", rr.TypeTXT, `"DMARC1" `+long),
		put("_smtp._tls.example.org", rr.TypeTXT, `"v=TLSRPTv1; rua=" `+long),
		put("s1._domainkey.example.org", rr.TypeTXT, `"k=" `+long+`"; p=AAAA"`),
		put("example.org", caa, `0 issue "_`+part+`"`), put("example.org", caa, `128 `+part+` "x"`),
	} {
		with(f)
		for _, x := range check.Run(f) {
			if len(x.Words) > 800 {
				t.Errorf("%s says %d bytes: %.200s", x.ID, len(x.Words), x.Words)
			}
		}
	}
}

func dkimStories() []story {
	key := func(data ...string) func(*explain.Facts) {
		return put("s1._domainkey.example.org", rr.TypeTXT, data...)
	}
	return []story{
		{"MAI09", "none", key(), "fail error", "no DKIM key"},
		{"MAI09", "two", key(`"p="`, `"v=DKIM1; p="`), "fail error", "2 TXT records"},
		{"MAI09", "revoked", key(`"v=DKIM1; p="`), "fail warning", "revoked"},
		{"MAI09", "no key", key(`"v=DKIM1; k=rsa"`), "fail error", "public key"},
		{"MAI09", "part of a key", key(`"v=DKIM1; p=MIIBIjANBgkqhkiG"`), "fail error", "not an RSA key"},
		{"MAI09", "no base64", key(`"v=DKIM1; p=MIIB*"`), "fail error", "base64"},
		{"MAI09", "version", key(`"k=rsa; v=DKIM1; p="`), "fail error", "first"},
		{"MAI09", "wrong version", key(`"v=DKIM2; p="`), "fail error", "DKIM1"},
		{"MAI09", "512 bits", key(`"v=DKIM1; ` + rsaKey(512) + `"`), "fail error", "512 bits"},
		{"MAI09", "1024 bits", key(`"` + rsaKey(1024) + `"`), "fail notice", "1024 bits"},
		{"MAI09", "ed25519", key(`"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="`), "pass", "256 bits"},
		{"MAI09", "ed25519 too short", key(`"v=DKIM1; k=ed25519; p=11qY"`), "fail error", "32 bytes"},
		{"MAI09", "other type", key(`"v=DKIM1; k=dsa; p=11qY"`), "fail warning", "dsa"},
	}
}

func caaStories() (out []story) {
	one := func(data ...string) func(*explain.Facts) { return put("example.org", caa, data...) }
	return []story{
		{"MAI12", "misspelt", one(`0 issuer "letsencrypt.org"`), "fail warning", "issuer"},
		{"MAI12", "misspelt and critical", one(`128 issuer "letsencrypt.org"`), "fail error", "no certificates"},
		{"MAI12", "URL", one(`0 issue "https://letsencrypt.org"`), "fail error", "not a domain"},
		{"MAI12", "two in one", one(`0 issue "letsencrypt.org, digicert.com"`), "fail error", "not a domain"},
		{"MAI12", "quotes", one(`0 issue "\"letsencrypt.org\""`), "fail error", "not a domain"},
		{"MAI12", "iodef", one(`0 iodef "security@example.org"`), "fail warning", "mailto"},
		{"MAI12", "flags", one(`1 issue "letsencrypt.org"`), "fail notice", "flags 1"},
		{"MAI12", "contradiction", one(`0 issue ";"`, `0 issue "letsencrypt.org"`), "fail notice", "forbids all"},
		{"MAI12", "nobody", one(`0 issue ";"`), "pass", ""},
		{"MAI12", "parameters", one(`0 issue "ca.example.net; account=230123; x=y"`, `0 ISSUEWILD "ca.example.net;"`),
			"pass", ""},
		{"MAI12", "none", one(), "", ""},
	}
}
