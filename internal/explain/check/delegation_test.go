package check_test

import (
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/registry"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// host changes the second nameserver, ns2.example.net.
func host(h iterate.Host) func(*explain.Facts) {
	return func(f *explain.Facts) { zoneOf(f).Hosts[0] = h }
}

// child makes the zone list other nameservers than the parent zone.
func child(ns ...string) func(*explain.Facts) {
	return func(f *explain.Facts) { zoneOf(f).ChildNS = sets(nsSet(3600, ns...)) }
}

// suffix makes the name a public suffix.
func suffix(n string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Name, f.Domain = name(n), dnsname.Name{}
		for i := range f.Answers {
			f.Answers[i].Question.Name = f.Name
		}
		for i := range f.Outcomes {
			f.Outcomes[i].End = f.Name
		}
	}
}

func scanned(f *explain.Facts) { f.Kind = explain.Scan }

func root(f *explain.Facts) { f.Zone, f.Zones = name("."), f.Zones[:1] }

func noNS(f *explain.Facts) {
	zoneOf(f).ParentNS, zoneOf(f).ChildNS, zoneOf(f).Hosts = nil, nil, nil
}

// own replaces ns2.example.net with a nameserver inside the zone.
func own(ns string, glue, found []string) func(*explain.Facts) {
	return func(f *explain.Facts) {
		z := zoneOf(f)
		z.ParentNS, z.ChildNS = sets(nsSet(3600, ns, "ns1.example.org")), sets(nsSet(3600, ns, "ns1.example.org"))
		z.Hosts[0] = iterate.Host{Name: name(ns), Glue: addrs(glue...), Found: addrs(found...)}
		if len(glue)+len(found) == 0 {
			z.Hosts[0].Problem = "no glue"
		}
	}
}

func delegationStories() []story {
	return []story{
		{"DEL01", "delegated", nil, "pass", "org delegates example.org to ns2.example.net and ns1.example.org"},
		{"DEL01", "the parent zone says no", undelegated, "fail critical", "org has no nameservers for example.org"},
		{"DEL01", "the parent zone says no, but has one like it",
			then(undelegated, similar("exemple.org", explain.NearSpelling)), "fail critical",
			"The similar name exemple.org exists."},
		{"DEL01", "there is no such top-level domain", rootless, "fail critical",
			"There is no top-level domain org: no name that ends with it can be resolved."},
		{"DEL01", "it is on hold", then(undelegated, status("clientHold")), "fail critical",
			"org has no nameservers for example.org: no name of the domain can be resolved. | Have the hold removed; see " +
				"REG03."},
		{"DEL01", "it is being deleted", then(undelegated, status("redemptionPeriod")), "fail critical",
			"| Have the domain restored; see REG04."},
		{"DEL01", "a top-level domain", suffix("org"), "pass", "delegates org"},
		{"DEL01", "a top-level domain that is not there", then(rootless, suffix("localhost")), "fail critical",
			"There is no top-level domain localhost"},
		{"DEL01", "a public suffix that is not there", then(undelegated, suffix("co.org")), "fail critical",
			"co.org is a public suffix that does not exist: the servers of org say so."},
		{"DEL01", "a public suffix without servers",
			then(undelegated, results(iterate.NoData, iterate.NoData), suffix("co.org"), scanned), "unknown",
			"co.org is a public suffix without its own servers"},
		{"DEL01", "a public suffix that nobody answered for", then(undelegated, unfound, suffix("co.org"), scanned),
			"unknown", "Whether co.org exists could not be determined."},
		{"DEL01", "the root", suffix("."), "", ""},
		{"DEL01", "nobody answered", func(f *explain.Facts) { undelegated(f); unfound(f) }, "unknown", ""},
		{"DEL01", "its records are in the parent zone", func(f *explain.Facts) {
			f.Zone, f.Zones = name("org"), f.Zones[:2]
			for i := range f.Outcomes {
				f.Outcomes[i].Zone = name("org")
			}
		}, "", ""},

		{"DEL02", "two", nil, "pass", "2 nameservers at 3 addresses"},
		{"DEL02", "only one", func(f *explain.Facts) {
			zoneOf(f).ParentNS, zoneOf(f).ChildNS = sets(nsSet(3600, "ns1.example.org")), sets(nsSet(3600, "ns1.example.org"))
		}, "fail warning", "org and example.org itself list only one nameserver for example.org, ns1.example.org"},
		{"DEL02", "only one at the parent", func(f *explain.Facts) {
			zoneOf(f).ParentNS = sets(nsSet(3600, "ns1.example.org"))
		}, "fail warning", "org lists only one nameserver for example.org"},
		{"DEL20", "both", nil, "pass", "have 2 IPv4 and 1 IPv6 addresses"},
		{"DEL20", "no IPv6", host(iterate.Host{Name: name("ns2.example.net"), Found: addrs(two)}), "fail notice",
			"list no nameserver with an IPv6 address"},
		{"DEL20", "one IPv4 address", host(iterate.Host{Name: name("ns2.example.net"), Found: addrs("2001:db8::53")}),
			"fail warning", "only one IPv4 address"},
		{"DEL20", "no IPv4", func(f *explain.Facts) {
			for i := range zoneOf(f).Hosts {
				zoneOf(f).Hosts[i].Glue, zoneOf(f).Hosts[i].Found = nil, addrs("2001:db8::53")
			}
		}, "fail error", "org and example.org itself list no nameserver with an IPv4 address"},
		{"DEL20", "one without IPv4, one without any address", func(f *explain.Facts) {
			z := zoneOf(f)
			for i := range z.Hosts {
				z.Hosts[i].Glue, z.Hosts[i].Found = nil, addrs("2001:db8::53")
			}
			z.Hosts[0].Found, z.Hosts[0].Problem = nil, "no such name"
		}, "fail error", "no nameserver with an IPv4 address"},
		{"DEL20", "the address of one is not known",
			host(iterate.Host{Name: name("ns2.example.net"), Problem: "not looked up"}), "", ""},
		{"DEL02", "two names of one machine", host(iterate.Host{Name: name("ns2.example.net"), Found: addrs(one)}),
			"fail warning", "but all of them have the same address, 192.0.2.1."},
		{"DEL02", "the address of one is not known",
			host(iterate.Host{Name: name("ns2.example.net"), Problem: "not looked up"}), "unknown", ""},
		{"DEL02", "not known", noNS, "unknown", ""},

		{"DEL03", "the same", nil, "pass", ""},
		{"DEL03", "one more above", child("ns1.example.org"), "fail warning", "ns2.example.net only at org"},
		{"DEL03", "one more in the zone", child("ns1.example.org", "ns2.example.net", "ns3.example.net"), "fail warning",
			"Add ns3.example.net at your registrar"},
		{"DEL03", "not one in common", child("ns1.new.net", "ns2.new.net"), "fail error", "share no server"},
		{"DEL03", "servers of the zone disagree", func(f *explain.Facts) {
			zoneOf(f).ChildNS = []iterate.NSSet{{NS: names("ns2.example.net", "ns1.example.org"), From: addrs(one)},
				{NS: names("ns1.example.org"), From: addrs(two)}}
		}, "fail warning", "ns2.example.net (198.51.100.2) lists ns1.example.org"},
		{"DEL03", "the root", then(suffix("."), root), "", ""},
		{"DEL19", "the root", then(suffix("."), root), "", ""},
		{"DEL03", "the zone did not say", func(f *explain.Facts) { zoneOf(f).ChildNS = nil }, "unknown", ""},
		{"DEL03", "on the servers of the parent zone", func(f *explain.Facts) {
			zoneOf(f).ParentNS, zoneOf(f).Hidden = nil, true
		}, "unknown", ""},

		{"DEL08", "with glue", nil, "pass", ""},
		{"DEL08", "without", own("ns2.example.org", nil, nil), "fail error",
			"ns2.example.org is a nameserver of example.org with a name inside the zone, but org does not hand out its " +
				"address."},
		{"DEL08", "without, but the other server knows it", own("ns2.example.org", nil, []string{two}), "fail error",
			"Add the host record ns2.example.org with the address 198.51.100.2"},
		{"DEL08", "none has any", func(f *explain.Facts) {
			own("ns2.example.org", nil, nil)(f)
			zoneOf(f).Hosts[1] = iterate.Host{Name: name("ns1.example.org"), Problem: "no glue"}
		}, "fail critical", ""},
		{"DEL08", "a name elsewhere needs none", host(iterate.Host{Name: name("ns2.example.net"), Problem: "not looked up"}),
			"pass", ""},
		{"DEL08", "not known", noNS, "unknown", ""},

		{"DEL09", "the same", nil, "pass", ""},
		{"DEL09", "an old one", own("ns2.example.org", []string{"192.0.2.66"}, []string{two}), "fail error",
			"org hands out 192.0.2.66 for ns2.example.org, but its own zone says 198.51.100.2."},
		{"DEL09", "one is missing", own("ns2.example.org", []string{two}, []string{"192.0.2.66", two}), "fail warning",
			"also has the address 192.0.2.66"},
		{"DEL09", "a family is left out", own("ns2.example.org", []string{two}, []string{two, web6}), "pass", ""},
		{"DEL09", "the zone denies it", func(f *explain.Facts) {
			own("ns2.example.org", []string{two}, nil)(f)
			f.Exchanges = append(f.Exchanges,
				iterate.Exchange{Zone: name("example.org"), Question: ask("ns2.example.org", 1), Class: iterate.NXDomain})
		}, "fail notice", "org hands out an address for ns2.example.org, but example.org itself says that the name does " +
			"not exist."},
		{"DEL09", "the zone did not say", own("ns2.example.org", []string{two}, nil), "unknown", ""},

		{"DEL10", "none", nil, "pass", ""},
		{"DEL10", "an alias", host(iterate.Host{Name: name("ns2.example.net"), Problem: "is an alias"}), "fail error",
			"ns2.example.net is listed as a nameserver of example.org, but it is an alias"},
		{"DEL10", "not looked up", host(iterate.Host{Name: name("ns2.example.net"), Problem: "could not be looked up"}),
			"unknown", ""},

		{"DEL11", "found", nil, "pass", ""},
		{"DEL11", "no such name", host(iterate.Host{Name: name("ns2.example.net"), Problem: "no such name"}), "fail error",
			"the name does not exist"},
		{"DEL11", "no address", host(iterate.Host{Name: name("ns2.example.net"), Problem: "no address"}), "fail error",
			"it has no address"},
		{"DEL11", "a dot is missing", own("ns1.provider.com.example.org", nil, nil), "fail error",
			"ns1.provider.com.example.org is listed as a nameserver of example.org and does not exist: example.org was " +
				"appended to ns1.provider.com."},
		{"DEL11", "the zone twice", own("ns2.example.org.example.org", nil, nil), "fail error",
			"example.org was appended to ns2.example.org."},
		{"DEL11", "an address", func(f *explain.Facts) {
			host(iterate.Host{Name: name("192.0.2.9"), Problem: "no such name"})(f)
		}, "fail error", "this is an address, but it must be a name"},
		{"DEL11", "none can be found", func(f *explain.Facts) {
			zoneOf(f).Hosts = []iterate.Host{{Name: name("ns2.example.net"), Problem: "no such name"}}
		}, "fail critical", ""},
		{"DEL11", "the budget was used up", host(iterate.Host{Name: name("ns2.example.net"), Problem: "not looked up"}),
			"unknown", ""},

		{"DEL12", "fine", nil, "pass", ""},
		{"DEL12", "anyone can have it", func(f *explain.Facts) {
			host(iterate.Host{Name: name("ns2.example.net"), Problem: "no such name"})(f)
			f.Registrations = append(f.Registrations, registry.Registration{Domain: "example.net.", State: registry.Free})
		}, "fail critical", "the domain example.net is not registered: anyone can register it and answer for example.org."},
		{"DEL12", "about to end", func(f *explain.Facts) {
			f.Registrations = append(f.Registrations,
				registry.Registration{Domain: "example.net.", State: registry.Registered,
					Dates: registry.Dates{Expires: now.Add(2 * days)}})
		}, "fail error", "ends on 2026-11-17"},
		{"DEL12", "the registry is down", func(f *explain.Facts) {
			f.Registrations = append(f.Registrations, registry.Registration{Domain: "example.net.", State: registry.Unknown})
		}, "unknown", ""},

		{"DEL13", "none", nil, "pass", ""},
		{"DEL13", "a circle", func(f *explain.Facts) {
			host(iterate.Host{Name: name("ns2.example.net"), Problem: "loop"})(f)
			f.Notes = []iterate.Note{{Kind: iterate.NoteNSLoop, Zone: name("example.org"), Subject: "ns2.example.net."}}
		}, "fail error", "The nameservers of example.org cannot be found: this requires ns2.example.net"},
		{"DEL13", "the budget was used up", host(iterate.Host{Name: name("ns2.example.net"), Problem: "not looked up"}),
			"unknown", ""},

		{"DEL14", "public", nil, "pass", ""},
		{"DEL14", "one is private", host(iterate.Host{Name: name("ns2.example.net"), Found: addrs("10.0.0.2")}), "fail error",
			"10.0.0.2, which is a private address"},
		{"DEL14", "all are", func(f *explain.Facts) {
			zoneOf(f).Hosts = []iterate.Host{{Name: name("ns2.example.net"), Found: addrs("10.0.0.2", "fe80::1")}}
		}, "fail error", "fe80::1, which is a link-local address"},
		{"DEL14", "an example, outside of a lab", func(f *explain.Facts) {
			f.Vantage.Name = "here"
		}, "fail error", "a documentation address"},
		{"DEL14", "an internal name space", func(f *explain.Facts) {
			f.Vantage.Private = true
			zoneOf(f).Hosts = []iterate.Host{{Name: name("ns2.example.net"), Found: addrs("10.0.0.2", "fd00::2")}}
		}, "pass", ""},
		{"DEL14", "not known", noNS, "unknown", ""},

		{"DEL18", "small", nil, "pass", "at most 400 bytes"},
		{"DEL18", "large", func(f *explain.Facts) { f.Servers[0].Referral = 1400 }, "fail notice", "has 1400 bytes"},
		{"DEL18", "not measured", func(f *explain.Facts) { f.Servers[0].Referral = 0 }, "", ""},

		{"DEL19", "they agree", nil, "pass", ""},
		{"DEL19", "they do not", func(f *explain.Facts) {
			zoneOf(f).ParentNS = append(zoneOf(f).ParentNS,
				iterate.NSSet{NS: names("ns1.old.net"), From: addrs("198.51.100.91")})
		}, "fail warning", "198.51.100.91 to about 50 % of lookups: ns1.old.net"},
		{"DEL19", "one has another TTL", func(f *explain.Facts) {
			z := zoneOf(f)
			z.ParentNS = append(z.ParentNS, iterate.NSSet{NS: z.ParentNS[0].NS, TTL: 7, From: addrs("198.51.100.91")})
		}, "pass", ""},
		{"DEL03", "one server has none", replied(one, "example.org", rr.TypeNS, iterate.NoData), "fail error",
			"says that example.org has no NS records, and its other servers list them"},
		{"DEL03", "the zone has none", then(func(f *explain.Facts) { zoneOf(f).ChildNS = nil },
			replied(one, "example.org", rr.TypeNS, iterate.NoData)), "fail critical", "itself has no NS records"},
		{"DEL19", "one of two denies", then(atParent("198.51.100.90", iterate.Referral),
			atParent("198.51.100.91", iterate.NXDomain)), "fail error",
			"1 of the 2 servers of org say that example.org is not " +
				"delegated: 198.51.100.91. The others delegate it. About 50 % of lookups fail"},
		{"DEL19", "one of two refuses", then(atParent("198.51.100.90", iterate.Referral),
			atParent("198.51.100.91", iterate.LameRefused)), "fail warning", "do not answer for example.org: 198.51.100.91"},
		{"DEL19", "one packet was lost", then(atParent("198.51.100.90", iterate.Referral),
			atParent("198.51.100.91", iterate.Timeout)), "pass", ""},
		{"DEL19", "one is silent", then(atParent("198.51.100.90", iterate.Referral),
			atParent("198.51.100.91", iterate.Timeout), atParent("198.51.100.91", iterate.Timeout)), "fail warning", ""},
		{"DEL19", "none said anything", func(f *explain.Facts) { zoneOf(f).ParentNS = nil }, "unknown", ""},
	}
}

// TestDisjoint checks that two sets of answering servers are an error of the delegation, and not of the servers.
func TestDisjoint(t *testing.T) {
	f := healthy()
	child("ns1.new.net", "ns2.new.net")(f)
	zoneOf(f).Hosts = append(zoneOf(f).Hosts, iterate.Host{Name: name("ns1.new.net"), Found: addrs("203.0.113.1")})
	f.Servers = append(f.Servers, server("ns1.new.net", "203.0.113.1"))
	for _, kind := range kinds {
		f.Kind = kind
		for _, x := range check.Run(f) {
			if x.Status == explain.Fail && x.ID != "DEL03" && x.ID != "REG07" {
				t.Errorf("%s", lines([]explain.Finding{x}))
			}
		}
	}
}

// TestVisible checks that everyone sees a fixed delegation after the longer of the two TTLs.
func TestVisible(t *testing.T) {
	f := healthy()
	child("ns1.example.org")(f)
	zoneOf(f).ParentNS[0].TTL = 172800
	c, _ := check.Find("DEL03")
	found := c.Judge(f)
	if got, want := found[0].Visible, now.Add(172800*time.Second); got.Before(want) || got.After(want.Add(5*time.Second)) {
		t.Errorf("visible by %v, want %v", got, want)
	}
}

// TestVisibleName checks that everyone sees a fixed record or alias after its TTL.
func TestVisibleName(t *testing.T) {
	nine := []string{"a.example.net", "b.example.net", "c.example.net", "d.example.net", "e.example.net", "f.example.net",
		"g.example.net", "h.example.net", "i.example.net"}
	for id, change := range map[string]func(*explain.Facts){
		"NAM03": then(alias("edge.example.net"),
			beside("www.example.org", rr.TypeMX, iterate.Answer,
				set("www.example.org", rr.TypeMX, 300, "10 mail.example.org."))),
		"NAM04": alias(nine...),
		"NAM05": then(alias("a.example.net"), note(iterate.NoteAliasLoop, "a.example.net. to www.example.org.")),
		"NAM11": other(41, "203.0.113.99"),
		"NAM14": func(f *explain.Facts) { f.Outcomes[0] = outcome(rr.TypeA, "192.168.1.10") },
	} {
		f := healthy()
		change(f)
		c, _ := check.Find(id)
		found := c.Judge(f)
		if got, want := found[0].Visible, now.Add(300*time.Second); got.Before(want) || got.After(want.Add(5*time.Second)) {
			t.Errorf("%s: visible by %v, want %v", id, got, want)
		}
	}
}

// atParent adds a reply of a server of org about example.org.
func atParent(server string, class iterate.Class) func(*explain.Facts) {
	return func(f *explain.Facts) {
		f.Exchanges = append(f.Exchanges, iterate.Exchange{Zone: name("org"), Server: addr(server),
			Question: ask("example.org", rr.TypeA), Class: class, Try: 1})
	}
}
