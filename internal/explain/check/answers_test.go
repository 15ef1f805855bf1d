package check_test

import (
	"net/netip"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// other makes the second server return other addresses, with a serial.
func other(serial uint32, data ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Answers[1] = answer(two, rr.TypeA, data...)
		f.Answers[1].Serial = serial
	}
}

// geo makes both servers answer by client network.
func geo(f *explain.Facts) {
	for _, at := range []string{one, two} {
		for net, to := range map[string]string{"192.0.2.0/24": web, "198.51.100.0/24": "203.0.113.20"} {
			a := answer(at, rr.TypeA, to)
			a.Subnet = netip.MustParsePrefix(net)
			f.Answers = append(f.Answers, a)
		}
	}
}

// rotate makes both servers return two of four addresses in rotation.
func rotate(f *explain.Facts) {
	for i, at := range []string{one, two} {
		f.Answers[i] = answer(at, rr.TypeA, "203.0.113.1", "203.0.113.2")
		f.Answers[i].Others = [][]explain.Set{{set("www.example.org", rr.TypeA, 300, "203.0.113.3", "203.0.113.4")}}
	}
	f.Answers[1].Sets, f.Answers[1].Others[0] = f.Answers[1].Others[0], f.Answers[1].Sets
}

// texts gives the servers different TXT records with the same serial.
func texts(f *explain.Facts) {
	for i, at := range []string{one, two} {
		f.Answers = append(f.Answers, answer(at, rr.TypeTXT, []string{`"a"`, `"b"`}[i]))
	}
}

func httpsRecord(data string) func(*explain.Facts) {
	return beside("www.example.org", https, iterate.Answer, set("www.example.org", https, 300, data))
}

func named(s string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Input, f.Name = s, name(s)
		for i := range f.Outcomes {
			f.Outcomes[i].End = name(s)
		}
	}
}

func answerStories() []story {
	return []story{
		{"NAM11", "the same", nil, "pass", "Both servers"},
		{"NAM11", "an old server", other(41, "203.0.113.99"), "fail error",
			"ns2.example.net (198.51.100.2) (version 41): 203.0.113.99"},
		{"NAM11", "one denies it", func(f *explain.Facts) {
			f.Answers[1].Class, f.Answers[1].Sets = iterate.NXDomain, nil
		}, "fail error", "that it does not exist"},
		{"NAM11", "a lame server's answer is none", func(f *explain.Facts) {
			f.Answers[1].Class, f.Answers[1].Sets = iterate.LameRefused, nil
			f.Answers = f.Answers[:2]
		}, "unknown", ""},
		{"NAM11", "geo is no difference", geo, "pass", ""},
		{"NAM11", "geo is no difference between servers either", then(geo, other(42, "203.0.113.20")), "pass", ""},
		{"NAM11", "rotation is not a disagreement", rotate, "pass", ""},
		{"NAM11", "a part of the same version", other(42, web, "203.0.113.11"), "fail warning", "no server is behind"},
		{"NAM11", "a part of another version is one", other(41, web, "203.0.113.11"), "fail error", ""},
		{"NAM11", "other addresses of the same version", other(42, "203.0.113.99"), "fail warning",
			"although all have version 42: no server is behind. Each computes its own answer, as with ALIAS or answers by " +
				"client network: "},
		{"NAM11", "other addresses of versions that are not known", func(f *explain.Facts) {
			other(0, "203.0.113.99")(f)
			f.Answers[0].Serial = 0
		}, "fail error", ""},
		{"NAM11", "another text of the same version", texts, "fail error", "though all have version 42"},
		{"NAM11", "one server does not rotate", then(rotate, other(41, "203.0.113.99")), "fail error", ""},
		{"NAM11", "the budget was used up", unfound, "unknown", ""},

		{"NAM12", "the same answer for all subnets", func(f *explain.Facts) {
			geo(f)
			for i := range f.Answers {
				f.Answers[i].Sets[0].Data = []string{web}
			}
		}, "pass", ""},
		{"NAM12", "by place", geo, "fail info", "(for 198.51.100.0/24): 203.0.113.20"},
		{"NAM12", "rotation does not depend on the network", rotate, "", ""},
		{"NAM12", "not tried", nil, "", ""},

		{"NAM13", "the same again", nil, "pass", ""},
		{"NAM13", "rotating", rotate, "fail info", "rotates, on purpose"},
		{"NAM13", "a stable difference is no rotation", other(42, web, "203.0.113.11"), "pass", ""},
		{"NAM13", "the budget was used up", unfound, "unknown", ""},

		{"NAM14", "public", nil, "pass", ""},
		{"NAM14", "private", func(f *explain.Facts) {
			f.Outcomes[0] = outcome(rr.TypeA, "192.168.1.10")
		}, "fail error", "www.example.org has the address 192.168.1.10, which is a private address"},
		{"NAM14", "loopback", func(f *explain.Facts) { f.Outcomes[1] = outcome(rr.TypeAAAA, "fd00::1") }, "fail error", ""},
		{"NAM14", "not known", unfound, "unknown", ""},

		{"NAM15", "as expected", func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web), set("www.example.org", rr.TypeAAAA, 0, web6)}
		}, "pass", ""},
		{"NAM15", "AAAA is another", func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web),
				set("www.example.org", rr.TypeAAAA, 0, "2001:db8::99")}
		}, "fail error", "AAAA is 2001:db8::10 where 2001:db8::99 is expected"},
		{"NAM15", "AAAA is not expected", func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web)}
		}, "fail error", "users with IPv6 go there"},
		{"NAM15", "AAAA stayed when A changed", func(f *explain.Facts) {
			f.Past = []explain.Past{{Name: f.Name, At: now.Add(-days),
				Sets: []explain.Set{set("www.example.org", rr.TypeA, 300, "203.0.113.99"),
					set("www.example.org", rr.TypeAAAA, 300, web6)}}}
		}, "fail warning", "AAAA is still 2001:db8::10, as on 2026-11-14"},
		{"NAM15", "not known", func(f *explain.Facts) {
			unfound(f)
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web)}
		}, "unknown", ""},
		{"NAM15", "nobody said what there should be", nil, "", ""},

		{"NAM20", "as expected", func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web)}
		}, "pass", ""},
		{"NAM20", "another", func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, "203.0.113.99")}
		}, "fail error", "www.example.org A is 203.0.113.10, but 203.0.113.99 is expected."},
		{"NAM20", "one more than expected", func(f *explain.Facts) {
			f.Outcomes[0] = outcome(rr.TypeA, web, "203.0.113.99")
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web)}
		}, "fail error", ""},
		{"NAM20", "not known", func(f *explain.Facts) {
			unfound(f)
			f.Expect = []explain.Set{set("www.example.org", rr.TypeA, 0, web)}
		}, "unknown", ""},
		{"NAM20", "nobody said what there should be", nil, "", ""},

		{"NAM16", "it agrees", httpsRecord("1 . alpn=h2,h3 ipv4hint=" + web), "pass", ""},
		{"NAM16", "another address", httpsRecord(`1 . alpn="h2" ipv4hint="203.0.113.77"`), "fail warning",
			"The HTTPS record of www.example.org has the hint 203.0.113.77, but its A records are 203.0.113.10."},
		{"NAM16", "there is none", httpsRecord("0 ."), "fail warning", ""},
		{"NAM16", "an alias with parameters", httpsRecord("0 edge.example.net. alpn=h2"), "fail warning",
			"which are ignored"},
		{"NAM16", "an alias", httpsRecord("0 edge.example.net."), "pass", ""},
		{"NAM16", "addresses not known", then(unfound, httpsRecord("1 . ipv4hint="+web)), "unknown", ""},
		{"NAM16", "no such record", nil, "", ""},

		{"NAM17", "correct", named("xn--bcher-kva.example.org"), "pass", ""},
		{"NAM17", "an A-label that stands for nothing", named("xn--0.example.org"), "fail warning",
			`"xn--0" in xn--0.example.org is not a valid label`},
		{"NAM17", "scripts that are mixed", named("xn--pypal-4ve.example.org"), "fail warning", "Cyrillic and Latin"},
		{"NAM17", "no international letters", nil, "", ""},

		{"NAM18", "it can", nil, "pass", ""},
		{"NAM18", "an underscore in a host", named("my_host.example.org"), "fail error", `"my_host" has an underscore`},
		{"NAM18", "an underscore in a service", then(named("_dmarc.example.org"), results(iterate.NoData, iterate.NoData)),
			"pass", ""},
		{"NAM18", "a hyphen at the end", named("my-.example.org"), "fail error", "begins or ends with a hyphen"},
		{"NAM18", "no name at all", func(f *explain.Facts) {
			f.Input, f.Name = "a b", dnsname.Name{}
		}, "fail error", `"a b" is not a domain name`},
		{"NAM18", "nothing was entered", func(f *explain.Facts) { f.Input, f.Name = "", dnsname.Name{} }, "", ""},

		{"NAM19", "a name", nil, "pass", ""},
		{"NAM19", "a URL", func(f *explain.Facts) {
			f.Input, f.Trimmed = "https://www.example.org:443/", []string{"https://", ":443/"}
		}, "fail info", "Enter only www.example.org"},
		{"NAM19", "nothing is left", func(f *explain.Facts) {
			f.Input, f.Trimmed, f.Name = "https://", []string{"https://"}, dnsname.Name{}
		}, "fail error", "contains no domain name"},
		{"NAM19", "nothing was entered", func(f *explain.Facts) { f.Input = "" }, "", ""},
	}
}

// TestOnPurpose checks that answers that differ by client network or rotate are never called old.
func TestOnPurpose(t *testing.T) {
	for what, make := range map[string]func(*explain.Facts){"by network": geo, "rotating": rotate,
		"each its own": other(42, "203.0.113.20")} {
		for _, kind := range kinds {
			f := healthy()
			make(f)
			f.Kind = kind
			for i := range f.Caches { // a gatherer that takes the other answer for an old one
				f.Caches[i].Samples = []explain.Sample{sample(safeat.Old, 100)}
				f.Caches[i].Samples[0].Sets[0].Data = []string{"203.0.113.4"}
			}
			for _, x := range check.Run(f) {
				if x.Status == explain.Fail && x.ID != "NAM12" && x.ID != "NAM13" &&
					!(x.ID == "NAM11" && x.Severity == explain.Warning) {
					t.Errorf("%s: %s", what, lines([]explain.Finding{x}))
				}
			}
			if safe := explain.Safe(f); safe.Verdict != safeat.Safe {
				t.Errorf("%s: %s", what, safe.Summary)
			}
		}
	}
}
