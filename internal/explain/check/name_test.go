package check_test

import (
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

func then(all ...func(*explain.Facts)) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for _, do := range all {
			do(f)
		}
	}
}

func results(of ...iterate.Class) func(*explain.Facts) {
	return func(f *explain.Facts) {
		for i, c := range of {
			if f.Outcomes[i].Result = c; c != iterate.Answer {
				f.Outcomes[i].Sets, f.Outcomes[i].Plain = nil, c
			}
		}
	}
}

func note(kind, subject string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Notes = append(f.Notes, iterate.Note{Kind: kind, Zone: name("example.org"), Subject: subject})
	}
}

const typeCAA = rr.Type(257)

func noCAA(f *explain.Facts) {
	f.Outcomes = []explain.Outcome{{Type: typeCAA, Result: iterate.NoData, End: f.Name, Zone: f.Zone}}
}

// beside adds an answer of the first server for another type.
func beside(owner string, t rr.Type, c iterate.Class, sets ...explain.Set) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Answers = append(f.Answers,
			explain.Answer{Question: ask(owner, t), Zone: name("example.org"), Server: addr(one), Class: c, Sets: sets,
				Serial: 42})
	}
}

// target adds the registration of the domain of the alias target.
func target(state registry.State) func(*explain.Facts) {
	return func(f *explain.Facts) {
		alias("shop.example.net")(f)
		results(iterate.NXDomain, iterate.NXDomain)(f)
		for i := range f.Outcomes {
			f.Outcomes[i].Zone = name("net")
		}
		f.Registrations = append(f.Registrations, registry.Registration{Domain: "example.net.", State: state})
	}
}

var nine = []string{"a.example.net", "b.example.net", "c.example.net", "d.example.net", "e.example.net",
	"f.example.net", "g.example.net", "h.example.net", "i.example.net"}

func nameStories() []story {
	return []story{
		{"NAM01", "it does", nil, "pass", ""},
		{"NAM01", "it does not", absent, "fail critical",
			"www.example.org does not exist: the servers of example.org say so. There is no wildcard either."},
		{"NAM01", "it does not, but one like it does", then(absent, similar("web.example.org", explain.NearSpelling)),
			"fail critical", "There is no wildcard either. The similar name web.example.org exists."},
		{"NAM01", "it was made with the domain in it twice",
			then(absent, similar("www.example.org.example.org", explain.NearDoubled)), "fail critical",
			"the record was created with the domain in it twice. | " +
				`In the record www.example.org.example.org, enter only "www" as the host`},
		{"NAM01", "there is no such top-level domain", then(rootless, suffix("localhost")), "", ""},
		{"NAM01", "it is an alias", alias("edge.example.net"), "pass", ""},
		{"NAM01", "one server has it",
			then(absent, beside("www.example.org", rr.TypeA, iterate.Answer, set("www.example.org", rr.TypeA, 300, web))),
			"pass", "see NAM11"},
		{"NAM01", "the domain is not there", undelegated, "", ""},
		{"NAM01", "the budget was used up", unfound, "unknown", ""},

		{"NAM02", "both", nil, "pass", "has A and AAAA records"},
		{"NAM02", "no AAAA is common", results(iterate.Answer, iterate.NoData), "pass", "and no AAAA"},
		{"NAM02", "only AAAA", results(iterate.NoData, iterate.Answer), "fail error",
			"www.example.org has no A records, only AAAA records."},
		{"NAM02", "neither", results(iterate.NoData, iterate.NoData), "fail critical",
			"exists, but has no A and AAAA records"},
		{"NAM02", "no AAAA, but it is expected", then(results(iterate.Answer, iterate.NoData), func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", rr.TypeAAAA, 0, web6)}
		}), "fail error", ""},
		{"NAM02", "no CAA is common", noCAA, "fail notice",
			"www.example.org has no CAA records, like most names. | Do nothing"},
		{"NAM02", "no CAA, but it is expected", then(noCAA, func(f *explain.Facts) {
			f.Expect = []explain.Set{set("www.example.org", typeCAA, 0, `0 issue "ca.example.net"`)}
		}), "fail critical", "exists, but has no CAA records"},
		{"NAM02", "where the alias leads", then(alias("edge.example.net"), results(iterate.NoData, iterate.NoData)),
			"fail critical", "edge.example.net, which www.example.org leads to, exists, but has no"},
		{"NAM02", "a top-level domain", then(results(iterate.NoData, iterate.NoData), suffix("org")), "fail critical",
			"org exists, but has no A and AAAA records. | Query a domain below it: public suffixes seldom have such " +
				"records. They have NS and SOA records. | you"},
		{"NAM02", "the budget was used up", unfound, "unknown", ""},

		{"NAM03", "not an alias", nil, "pass", ""},
		{"NAM03", "an alias alone", alias("edge.example.net"), "pass", ""},
		{"NAM03", "at the apex", beside("example.org", rr.TypeA, iterate.Answer,
			set("example.org", rr.TypeCNAME, 300, "edge.example.net.")), "fail error",
			"example.org is the apex of its zone and has a CNAME, to edge.example.net"},
		{"NAM03", "beside MX", then(alias("edge.example.net"),
			beside("www.example.org", rr.TypeMX, iterate.Answer,
				set("www.example.org", rr.TypeMX, 300, "10 mail.example.org."))), "fail critical", "also MX records"},
		{"NAM03", "not for all types", then(alias("edge.example.net"), beside("www.example.org", rr.TypeTXT, iterate.NoData)),
			"fail critical", "does not return it for TXT queries"},
		{"NAM03", "not asked", unfound, "unknown", ""},

		{"NAM04", "none", nil, "pass", "not an alias"},
		{"NAM04", "two", alias("a.example.net", "b.example.net"), "pass",
			"www.example.org → a.example.net (TTL 300) → b.example.net (TTL 300)"},
		{"NAM04", "five", alias(nine[:5]...), "fail warning", "through 5 aliases"},
		{"NAM04", "nine", alias(nine...), "fail error", "not all resolvers follow"},
		{"NAM04", "not known", func(f *explain.Facts) { f.Outcomes = nil }, "unknown", ""},

		{"NAM05", "no circle", alias("a.example.net"), "pass", ""},
		{"NAM05", "a circle", then(alias("a.example.net"), note(iterate.NoteAliasLoop, "a.example.net. to www.example.org.")),
			"fail critical", "from a.example.net back to www.example.org"},
		{"NAM05", "not an alias", nil, "", ""},
		{"NAM05", "the budget was used up", unfound, "unknown", ""},

		{"NAM06", "it exists", alias("a.example.net"), "pass", ""},
		{"NAM06", "it does not", then(alias("a.example.net"), results(iterate.NXDomain, iterate.NXDomain)), "fail critical",
			"www.example.org leads to a.example.net, which does not exist."},
		{"NAM06", "not known", then(alias("a.example.net"), results(iterate.Unknown, iterate.Unknown)), "unknown", ""},
		{"NAM06", "not an alias", nil, "", ""},

		{"NAM08", "registered", target(registry.Registered), "pass", ""},
		{"NAM08", "free", target(registry.Free), "fail critical", "the domain example.net is not registered"},
		{"NAM08", "the registry is down", target(registry.Unknown), "unknown", ""},
		{"NAM08", "in the same domain", alias("a.example.org"), "", ""},

		{"NAM09", "its own", nil, "pass", "there is no wildcard"},
		{"NAM09", "the wildcard's", func(f *explain.Facts) {
			f.Wildcard.Class, f.Wildcard.Same = iterate.Answer, true
		}, "fail notice", "it comes from a wildcard"},
		{"NAM09", "other than the wildcard's", func(f *explain.Facts) {
			f.Wildcard.Class = iterate.Answer
		}, "pass", "a wildcard at the same level has others"},
		{"NAM09", "not tried", func(f *explain.Facts) { f.Wildcard = nil }, "unknown", ""},
		{"NAM09", "nothing there", absent, "", ""},

		{"NAM10", "the same", nil, "pass", ""},
		{"NAM10", "denied in between", note(iterate.NoteENT, "b.example.org. at 192.0.2.1"), "fail warning",
			"192.0.2.1, a server of example.org, says that b.example.org does not exist, although there are names below it."},
		{"NAM10", "only as a whole", func(f *explain.Facts) {
			absent(f)
			f.Outcomes[0].Plain = iterate.Answer
		}, "fail warning", "queried as a whole"},
		{"NAM10", "the budget was used up", unfound, "unknown", ""},
	}
}
