package check_test

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/safeat"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

var now = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

const (
	days  = 24 * time.Hour
	https = rr.Type(65)
)

func name(s string) dnsname.Name { return dnsname.MustParse(s) }

func names(all ...string) (out []dnsname.Name) {
	for _, s := range all {
		out = append(out, name(s))
	}
	return out
}

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func addrs(all ...string) (out []netip.Addr) {
	for _, s := range all {
		out = append(out, addr(s))
	}
	return out
}

func set(owner string, t rr.Type, ttl uint32, data ...string) explain.Set {
	return explain.Set{Name: name(owner), Type: t, TTL: ttl, Data: data}
}

func soa(serial uint32) *explain.SOA {
	return &explain.SOA{Owner: name("example.org"), TTL: 3600, MName: name("ns1.example.org"),
		RName:  name("hostmaster.example.org"),
		Serial: serial, Refresh: 7200, Retry: 900, Expire: 1209600, Minimum: 3600}
}

func ask(owner string, t rr.Type) iterate.Question {
	return iterate.Question{Name: dnsname.MustParse(owner), Type: t}
}

func yes() explain.Probe { return explain.Probe{Fact: explain.Yes} }
func no() explain.Probe  { return explain.Probe{Fact: explain.No} }

// server returns a server that passes all checks.
func server(host, address string) explain.Server {
	return explain.Server{
		Zone: name("example.org"), Host: name(host), Addr: addr(address), Listed: []string{"parent", "child"},
		Class:  iterate.Answer,
		Health: iterate.Up, Sent: 5, RTT: 20 * time.Millisecond, SOA: soa(42), TCP: yes(), EDNS: yes(), EDNSVersion: yes(),
		EDNSOption: yes(),
		EDNSFlag:   yes(), Truncation: yes(), Case: yes(), Source: yes(), Types: yes(), Recursion: no(), Transfer: no(),
		Limits:      no(),
		NegativeSOA: yes(), Evidence: []int{3},
	}
}

const (
	one, two = "192.0.2.1", "198.51.100.2"
	web      = "203.0.113.10"
	web6     = "2001:db8::10"
)

// healthy returns the facts of a domain without faults: www.example.org, on two servers, signed, registered, and cached
// by three resolvers.
func healthy() *explain.Facts {
	return &explain.Facts{
		Kind: explain.Analyze, Input: "www.example.org", Name: name("www.example.org"),
		Types:   []rr.Type{rr.TypeA, rr.TypeAAAA},
		At:      now,
		Vantage: explain.Vantage{Name: "lab", IPv4: explain.Yes, IPv6: explain.Yes, Intercepted: no(), SkewKnown: true},
		Domain:  name("example.org"), Owner: name("example.org"), Zone: name("example.org"),
		Registrations: []registry.Registration{registration()},
		Zones: []iterate.Zone{
			{Name: name("."), Hosts: []iterate.Host{{Name: name("a.root-servers.net"), Glue: addrs("198.51.100.99")}}},
			{Name: name("org"), Parent: name("."), ParentNS: sets(nsSet(86400, "a.nic.org")),
				ChildNS: sets(nsSet(86400, "a.nic.org"))},
			zone(),
		},
		Servers: []explain.Server{
			{Zone: name("org"), Host: name("a.nic.org"), Addr: addr("198.51.100.90"), Listed: []string{"parent"},
				Class: iterate.Answer, Health: iterate.Up, Referral: 400},
			server("ns1.example.org", one), server("ns2.example.net", two),
		},
		Answers: []explain.Answer{
			answer(one, rr.TypeA, web), answer(two, rr.TypeA, web), answer(one, rr.TypeAAAA, web6),
			answer(two, rr.TypeAAAA, web6),
		},
		Outcomes: []explain.Outcome{outcome(rr.TypeA, web), outcome(rr.TypeAAAA, web6)},
		Denials: []explain.Denial{{Zone: name("example.org"), Asked: name("q7x.example.org"), Class: iterate.NXDomain,
			TTL: 3600, Minimum: 3600,
			Ranges: safeat.RangesNSEC, NSECTTL: 3600, Covers: []string{"mail.example.org.", "www.example.org."}}},
		Wildcard: &explain.Wildcard{Asked: name("q7x.example.org"), Class: iterate.NXDomain},
		Secure: []secure.Result{{Question: ask("www.example.org", rr.TypeA), State: secure.Secure,
			Zones: []secure.Zone{signed()}}},
		Mail: mail(),
		Caches: []explain.Cache{cache("Alpha", "192.0.2.201"), cache("Beta", "192.0.2.202"), cache("Gamma", "192.0.2.203"),
			local()},
	}
}

func registration() registry.Registration {
	return registry.Registration{
		Domain: "example.org.", State: registry.Registered, Source: registry.RDAP,
		Registrar:   registry.Registrar{Name: "Good Names"},
		Dates:       registry.Dates{Created: now.Add(-1000 * days), Expires: now.Add(200 * days)},
		Statuses:    []registry.Status{registry.StatusOf("client transfer prohibited")},
		Nameservers: []registry.Host{{Name: "ns2.example.net."}, {Name: "ns1.example.org."}},
		DNSSEC: registry.DNSSEC{Known: true, Signed: true,
			DS: []registry.DS{{KeyTag: 7, Algorithm: 13, DigestType: 2, Digest: "AABBCCDDEE"}}},
	}
}

func sets(all ...iterate.NSSet) []iterate.NSSet { return all }

func nsSet(ttl uint32, ns ...string) iterate.NSSet {
	return iterate.NSSet{NS: names(ns...), TTL: ttl, From: addrs("198.51.100.90")}
}

func zone() iterate.Zone {
	ns := []string{"ns2.example.net", "ns1.example.org"}
	return iterate.Zone{
		Name: name("example.org"), Parent: name("org"), ParentNS: sets(nsSet(3600, ns...)), ChildNS: sets(nsSet(3600, ns...)),
		Hosts: []iterate.Host{
			{Name: name("ns2.example.net"), Found: addrs(two, "2001:db8::2")},
			{Name: name("ns1.example.org"), Glue: addrs(one), Found: addrs(one)},
		},
	}
}

func answer(at string, t rr.Type, data ...string) explain.Answer {
	return explain.Answer{Question: ask("www.example.org", t), Zone: name("example.org"), Server: addr(at),
		Class: iterate.Answer,
		Sets:  []explain.Set{set("www.example.org", t, 300, data...)}, Serial: 42}
}

func outcome(t rr.Type, data ...string) explain.Outcome {
	return explain.Outcome{Type: t, Result: iterate.Answer, End: name("www.example.org"), Zone: name("example.org"),
		Sets: []explain.Set{set("www.example.org", t, 300, data...)}, Plain: iterate.Answer}
}

func signed() secure.Zone {
	both := addrs(one, two)
	return secure.Zone{
		Name: name("example.org"), Parent: name("org"), State: secure.Secure,
		DS:      []secure.DS{{KeyTag: 7, Algorithm: 13, DigestType: 2, Digest: "aabbccddee", TTL: 3600, Matches: true}},
		Keys:    []secure.Key{{KeyTag: 7, Algorithm: 13, Bits: 256, SEP: true, From: both}},
		KeySets: []secure.KeySet{{KeyTags: []uint16{7}, TTL: 3600, From: both, State: secure.Secure}},
		Signatures: []secure.Signature{
			{Owner: name("www.example.org"), Type: "A", KeyTag: 7, Expiration: now.Add(10 * days), Valid: true, From: both},
			{Owner: name("example.org"), Type: "DNSKEY", KeyTag: 7, Expiration: now.Add(20 * days), Valid: true, From: both},
		},
		Denial: secure.Denial{Kind: secure.DenialNSEC, OK: true},
		Child: secure.ChildDS{Seen: true,
			Records: []secure.ChildRecord{{Type: "CDS", KeyTag: 7, Matches: true, AtParent: true}}},
	}
}

// unsigned returns the DNSSEC result of an unsigned zone.
func unsigned() secure.Zone {
	return secure.Zone{Name: name("example.org"), Parent: name("org"), State: secure.Insecure, Cause: secure.NoDS,
		Child: secure.ChildDS{Seen: true}}
}

func cache(operator, address string) explain.Cache {
	return explain.Cache{ID: operator, Operator: operator, Addr: addr(address),
		Samples: []explain.Sample{sample(safeat.Current, 200), sample(safeat.Current, 199)}}
}

func local() explain.Cache {
	c := cache("this machine's", "127.0.0.53")
	c.Local = true
	return c
}

// sample returns an answer that has this state with the healthy facts.
func sample(state safeat.State, left uint32) explain.Sample {
	s := explain.Sample{Question: ask("www.example.org", rr.TypeA), Recurse: true, Rcode: "NOERROR"}
	switch state {
	case safeat.Silent:
		s.Rcode = ""
	case safeat.Failed:
		s.Rcode = "SERVFAIL"
	case safeat.Filtered:
		s.Sets = []explain.Set{set("www.example.org", rr.TypeA, left, "0.0.0.0")}
	case safeat.Stale:
		s.Sets, s.Errors = []explain.Set{set("www.example.org", rr.TypeA, left, web)}, []iterate.EDE{{Code: 3}}
	case safeat.Current:
		s.Sets = []explain.Set{set("www.example.org", rr.TypeA, left, web)}
	case safeat.Old:
		s.Sets = []explain.Set{set("www.example.org", rr.TypeA, left, "203.0.113.99")}
	case safeat.Negative:
		s.Rcode, s.SOA = "NXDOMAIN", &explain.SOA{Owner: name("example.org"), TTL: left, Serial: 41}
	}
	return s
}

// Accessors for the parts of the healthy facts that tests change most.
func zoneOf(f *explain.Facts) *iterate.Zone           { return &f.Zones[2] }
func first(f *explain.Facts) *explain.Server          { return &f.Servers[1] }
func second(f *explain.Facts) *explain.Server         { return &f.Servers[2] }
func reg(f *explain.Facts) *registry.Registration     { return &f.Registrations[0] }
func sec(f *explain.Facts) *secure.Zone               { return &f.Secure[0].Zones[0] }
func both(f *explain.Facts, do func(*explain.Server)) { do(first(f)); do(second(f)) }

// absent makes the name not exist.
func absent(f *explain.Facts) {
	f.Caches = nil
	for i := range f.Answers {
		f.Answers[i].Class, f.Answers[i].Sets = iterate.NXDomain, nil
	}
	for i := range f.Outcomes {
		f.Outcomes[i].Result, f.Outcomes[i].Sets, f.Outcomes[i].Plain = iterate.NXDomain, nil, iterate.NXDomain
	}
}

// undelegated removes the domain from org.
func undelegated(f *explain.Facts) {
	absent(f)
	f.Zone, f.Zones, f.Servers, f.Secure, f.Wildcard = name("org"), f.Zones[:2], f.Servers[:1], nil, nil
	for i := range f.Answers {
		f.Answers[i].Zone, f.Answers[i].Server = name("org"), addr("198.51.100.90")
	}
	for i := range f.Outcomes {
		f.Outcomes[i].Zone = name("org")
	}
	f.Denials = []explain.Denial{{Zone: name("org"), Class: iterate.NXDomain, TTL: 900, Minimum: 900,
		Ranges: safeat.RangesNone}}
}

// rootless makes the root deny the top-level domain.
func rootless(f *explain.Facts) {
	undelegated(f)
	f.Zone, f.Zones, f.Servers, f.Denials = name("."), f.Zones[:1], nil, nil
	for i := range f.Answers {
		f.Answers[i].Zone = name(".")
	}
	for i := range f.Outcomes {
		f.Outcomes[i].Zone = name(".")
	}
}

// similar adds a similar name that exists.
func similar(n, how string) func(*explain.Facts) {
	return func(f *explain.Facts) { f.Near = []explain.Near{{Name: name(n), How: how}} }
}

// alias makes the name an alias; the last target has the answer.
func alias(targets ...string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		from := "www.example.org"
		for _, to := range targets {
			f.Chain = append(f.Chain,
				explain.Hop{Link: iterate.Link{From: name(from), To: name(to), Type: "CNAME", TTL: 300, Zone: name("example.org")},
					Servers: 2, Agree: 2, Domain: registry.SuffixOf(dnsname.MustParse(to)).Domain})
			from = to
		}
		for i, a := range f.Answers {
			f.Answers[i].Sets = []explain.Set{set("www.example.org", rr.TypeCNAME, 300, targets[0]+".")}
			_ = a
		}
		for i := range f.Outcomes {
			o := &f.Outcomes[i]
			o.End = name(from)
			o.Sets[0].Name = name(from)
		}
		for i := range f.Caches {
			f.Caches[i].Samples = []explain.Sample{{Question: ask("www.example.org", rr.TypeA), Rcode: "NOERROR",
				Sets: []explain.Set{set("www.example.org", rr.TypeCNAME, 200, targets[0]+".")}}}
		}
	}
}

// unfound makes all outcomes unknown, as if the budget was used up.
func unfound(f *explain.Facts) {
	f.Unfinished, f.Answers, f.Chain = []string{"400 queries"}, nil, nil
	for i := range f.Outcomes {
		f.Outcomes[i].Result, f.Outcomes[i].Sets, f.Outcomes[i].Plain = iterate.Unknown, nil, ""
	}
}

// unasked makes all servers of the zone not queried.
func unasked(f *explain.Facts) {
	both(f, func(s *explain.Server) {
		*s = explain.Server{Zone: s.Zone, Host: s.Host, Addr: s.Addr, Listed: s.Listed, Class: iterate.Unknown,
			Health: iterate.Unchecked}
	})
}
