package check_test

import (
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
)

func plain(f *explain.Facts) { *sec(f) = unsigned() }

func bogus(c secure.Cause) func(*explain.Facts) {
	return func(f *explain.Facts) {
		z := sec(f)
		z.State, z.Cause, f.Secure[0].State = secure.Bogus, c, secure.Bogus
		z.DS[0].Matches = false
		if c == secure.Unsigned {
			z.Keys, z.KeySets, z.Signatures, z.Denial = nil, nil, nil, secure.Denial{}
		}
	}
}

func notSeen(f *explain.Facts) {
	*sec(f) = secure.Zone{Name: name("example.org"), Parent: name("org"), State: secure.Unknown, Cause: secure.NotSeen,
		Why: "The keys were not seen."}
}

// signature changes the signature of www.example.org A.
func signature(c secure.Cause, from ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		s := &sec(f).Signatures[0]
		if len(from) > 0 { // the others have a good one
			sec(f).Signatures = append(sec(f).Signatures, *s)
			sec(f).Signatures[2].From = addrs(one)
			s = &sec(f).Signatures[0]
			s.From = addrs(from...)
		}
		s.Valid, s.Cause = false, c
	}
}

func ending(in time.Duration) func(*explain.Facts) {
	return func(f *explain.Facts) { sec(f).Signatures[0].Expiration = now.Add(in) }
}

func secureStories() []story {
	failing := func(f *explain.Facts) {
		alpha(sample(safeat.Failed, 0), unchecked(sample(safeat.Current, 100)))(f)
	}
	return []story{
		{"SEC01", "it fits", nil, "pass", ""},
		{"SEC01", "it fits no key", bogus(secure.NoKey), "fail critical",
			"The parent zone has the DS 7 (algorithm 13, digest 2 AABBCCDD…) for example.org, which matches none of its " +
				"keys (7)"},
		{"SEC01", "the key does not sign", bogus(secure.KeysUnsigned), "fail critical", "does not sign the zone's keys"},
		{"SEC01", "the parent does not prove it", func(f *explain.Facts) {
			*sec(f) = secure.Zone{Name: name("example.org"), Parent: name("org"), State: secure.Bogus,
				Cause: secure.BadDenial, Why: "a negative reply of org. has no proof"}
		}, "fail critical", "Validating resolvers reject every answer of example.org: a negative reply of org. has no " +
			"proof."},
		{"SEC01", "another root", func(f *explain.Facts) {
			*sec(f) = secure.Zone{Name: name("example.org"), Parent: name("."), State: secure.Bogus, Cause: secure.Above}
			f.Secure[0].Zones = append(f.Secure[0].Zones, secure.Zone{Name: name("."), State: secure.Bogus,
				Cause: secure.Unsigned, Why: "there are DS records for ., but the zone has no keys"})
		}, "unknown", "the root does not have the expected keys"},
		{"SEC01", "not signed", plain, "", ""},
		{"SEC01", "not seen", notSeen, "unknown", ""},
		{"SEC02", "signed", nil, "pass", ""},
		{"SEC02", "not signed", bogus(secure.Unsigned), "fail critical", "but the zone is not signed"},
		{"SEC02", "no DS", plain, "", ""},
		{"SEC02", "not seen", notSeen, "unknown", ""},

		{"SEC03", "valid", nil, "pass", "the first to expire is that of www.example.org A, on 2026-11-25"},
		{"SEC03", "expired", signature(secure.Expired), "fail critical", "The signature of www.example.org A has expired"},
		{"SEC03", "not yet", signature(secure.Early), "fail critical", "is not valid yet"},
		{"SEC03", "wrong", signature(secure.Mismatch), "fail critical", "is wrong"},
		{"SEC03", "expired at one server", signature(secure.Expired, two), "fail error", "ns2.example.net (198.51.100.2)"},
		{"SEC03", "an expired one beside a good one", signature(secure.Expired, one), "pass", ""},
		{"SEC03", "missing", func(f *explain.Facts) {
			f.Secure[0].Answers = []secure.Answer{{Question: ask("www.example.org", 1), Zone: name("example.org"),
				Class: iterate.Answer, State: secure.Bogus, Cause: secure.Missing}}
		}, "fail critical", "is missing"},
		{"SEC03", "two days left", ending(2 * days), "fail warning", "expires on 2026-11-17 12:00 UTC, in 2 days"},
		{"SEC03", "two days left, but the next one is there", func(f *explain.Facts) {
			sec(f).Signatures = append(sec(f).Signatures, sec(f).Signatures[0])
			ending(2 * days)(f)
		}, "pass", ""},
		{"SEC03", "expired, and nobody validates it", func(f *explain.Facts) {
			signature(secure.Expired)(f)
			sec(f).State, sec(f).Cause, sec(f).DS = secure.Insecure, secure.NoDS, nil
		}, "fail warning", ""},
		{"SEC03", "not seen", notSeen, "unknown", ""},
		{"SEC03", "not signed", plain, "", ""},

		{"SEC04", "proven", nil, "pass", "with NSEC"},
		{"SEC04", "not proven", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC, Cause: secure.BadDenial, Subject: "q7x.example.org. A",
				Problem: "The NSEC record does not cover the name."}
		}, "fail critical", "does not cover the name"},
		{"SEC04", "without any proof", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNone, Subject: "q7x.example.org. A",
				Problem: "There is no NSEC record."}
		}, "fail critical", ""},
		{"SEC04", "the proof is not signed", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC, Cause: secure.Missing, Problem: "x NSEC is not signed"}
		}, "fail critical", "x NSEC is not signed"},
		{"SEC04", "one server has no proof", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC, Cause: secure.BadDenial, Subject: "q7x.example.org. A",
				Problem: "it has no proof", Proving: addrs(one), Failing: addrs(two)}
		}, "fail error", "ns2.example.net (198.51.100.2) does not prove that q7x.example.org A does not exist, and other " +
			"servers of example.org do: it has no proof."},
		{"SEC04", "no denial was seen", func(f *explain.Facts) { sec(f).Denial = secure.Denial{} }, "unknown", ""},
		{"SEC04", "not signed", plain, "", ""},

		{"SEC05", "of today", nil, "pass", ""},
		{"SEC05", "RSA with SHA-1", func(f *explain.Facts) {
			sec(f).Keys[0].Algorithm = 7
		}, "fail warning", "key 7 uses RSASHA1-NSEC3-SHA1"},
		{"SEC05", "a short key", func(f *explain.Facts) {
			sec(f).Keys[0].Algorithm, sec(f).Keys[0].Bits = 8, 1024
		}, "fail warning", "key 7 has only 1024 bits"},
		{"SEC05", "a digest of SHA-1 alone", func(f *explain.Facts) {
			sec(f).DS[0].DigestType = 1
		}, "fail warning", "the DS for key 7 uses SHA-1"},
		{"SEC05", "a digest of SHA-1 beside another", func(f *explain.Facts) {
			sec(f).DS = append(sec(f).DS, sec(f).DS[0])
			sec(f).DS[0].DigestType = 1
		}, "fail notice", ""},
		{"SEC05", "an algorithm that is not assigned", func(f *explain.Facts) { sec(f).Keys[0].Algorithm = 100 },
			"fail warning", "uses the algorithm number 100, which is not assigned"},
		{"SEC05", "a private algorithm", func(f *explain.Facts) { sec(f).Keys[0].Algorithm = 253 }, "fail warning",
			"which is for private use"},
		{"SEC05", "a reserved algorithm", func(f *explain.Facts) { sec(f).Keys[0].Algorithm = 252 }, "fail warning",
			"number 252, which is reserved"},
		{"SEC05", "a reserved digest", func(f *explain.Facts) { sec(f).DS[0].DigestType = 200 }, "fail warning",
			"number 200, which is reserved"},
		{"SEC05", "a digest that is not assigned", func(f *explain.Facts) { sec(f).DS[0].DigestType = 77 }, "fail warning",
			"uses the digest number 77, which is not assigned"},
		{"SEC05", "not signed", plain, "", ""},
		{"SEC05", "not known", func(f *explain.Facts) { f.Secure = nil }, "unknown", ""},

		{"SEC06", "NSEC", nil, "pass", ""},
		{"SEC06", "ten iterations and salt", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC3, OK: true, Iterations: 10, Salt: "ABCD"}
		}, "fail notice", "with 10 extra iterations and the salt ABCD"},
		{"SEC06", "none", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC3, OK: true}
		}, "pass", ""},
		{"SEC06", "servers differ", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC3, OK: true, Params: []secure.NSEC3Params{
				{From: addrs(one)}, {Salt: "ab", From: addrs(two)}}}
		}, "fail warning", "different parameters"},
		{"SEC06", "one uses NSEC", func(f *explain.Facts) {
			sec(f).Denial = secure.Denial{Kind: secure.DenialNSEC3, OK: true, NSEC: addrs(two),
				Params: []secure.NSEC3Params{{From: addrs(one)}}}
		}, "fail warning", "(192.0.2.1): NSEC3 with 0 extra iterations and no salt; ns2.example.net (198.51.100.2): NSEC."},
		{"SEC06", "no denial was seen", func(f *explain.Facts) { sec(f).Denial = secure.Denial{} }, "unknown", ""},

		{"SEC07", "with a DS", nil, "pass", ""},
		{"SEC07", "without", func(f *explain.Facts) {
			sec(f).State, sec(f).Cause, sec(f).DS = secure.Insecure, secure.NoDS, nil
		}, "fail notice", "nobody can verify the signatures"},
		{"SEC07", "not signed", plain, "", ""},
		{"SEC07", "not seen", notSeen, "unknown", ""},

		{"SEC08", "what is there", nil, "pass", ""},
		{"SEC08", "they contradict", func(f *explain.Facts) {
			sec(f).Child.Problem = "CDS and CDNSKEY are of different keys."
		}, "fail warning", "different keys"},
		{"SEC08", "delete", func(f *explain.Facts) {
			sec(f).Child = secure.ChildDS{Seen: true, Delete: true}
		}, "fail warning", "requests the deletion of its DS"},
		{"SEC08", "a new one", func(f *explain.Facts) { sec(f).Child.Pending = true }, "fail notice", "another DS"},
		{"SEC08", "not asked", func(f *explain.Facts) { sec(f).Child = secure.ChildDS{} }, "unknown", ""},

		{"SEC09", "the same", nil, "pass", "Both servers"},
		{"SEC09", "different", func(f *explain.Facts) {
			sec(f).KeySets = []secure.KeySet{{KeyTags: []uint16{7}, From: addrs(one)},
				{KeyTags: []uint16{8, 9}, From: addrs(two)}}
		}, "fail error", "ns1.example.org (192.0.2.1) has key 7 and ns2.example.net (198.51.100.2) has keys 8 and 9"},
		{"SEC09", "the same, and one is not signed", func(f *explain.Facts) {
			sec(f).KeySets = []secure.KeySet{{KeyTags: []uint16{7}, From: addrs(one), State: secure.Secure},
				{KeyTags: []uint16{7}, From: addrs(two), State: secure.Bogus}}
		}, "pass", "Both servers"},
		{"SEC09", "of one server only", func(f *explain.Facts) { sec(f).KeySets[0].From = addrs(one) }, "unknown", ""},
		{"SEC09", "not signed", plain, "", ""},

		{"SEC10", "accepted", nil, "pass", ""},
		{"SEC10", "one fails, and not with CD", failing, "fail error",
			"Alpha (192.0.2.201) fails for www.example.org, but gives the answer without validation"},
		{"SEC10", "one fails, and we see why", then(failing, bogus(secure.NoKey)), "fail critical", ""},
		{"SEC10", "one fails with CD, too", alpha(sample(safeat.Failed, 0), unchecked(sample(safeat.Failed, 0))), "unknown",
			""},
		{"SEC10", "nobody answered", noCaches, "unknown", ""},

		{"SEC11", "no DS", then(plain, planned("ns1.new.net")), "pass", ""},
		{"SEC11", "a DS", planned("ns1.new.net"), "fail error", "do not change the nameservers before 13:01 UTC"},
		{"SEC11", "no new ones", planned("ns1.example.org"), "pass", ""},
		{"SEC11", "not seen", then(notSeen, planned("ns1.new.net")), "unknown", ""},
		{"SEC11", "no plan", nil, "", ""},
	}
}
