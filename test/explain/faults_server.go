package explain

import "github.com/nameplane/nameplane/internal/explain"

// serverFaults are faults of the last server. Unless the name says otherwise, the other servers stay good: a scan must
// find the fault although resolving works.
var serverFaults = []Fault{
	{Name: "a server refuses", Want: []string{"DEL04"}, Allowed: []string{"SOA09"}, Tags: []string{"server"},
		Apply: onLastServer("fault refused")},
	{Name: "a server fails", Want: []string{"DEL04"}, Tags: []string{"server"}, Apply: onLastServer("fault servfail")},
	{Name: "a server is not an authority", Want: []string{"DEL04"}, Tags: []string{"server"},
		Apply: onLastServer("fault modest")},
	{Name: "a server implements nothing", Want: []string{"DEL04"}, Worst: explain.Error, Tags: []string{"server"},
		Apply: onLastServer("fault notimp")},
	{Name: "a server understands no query", Want: []string{"DEL04"}, Worst: explain.Error, Tags: []string{"server"},
		Apply: onLastServer("fault formerr")},
	{Name: "a server truncates every reply", Want: []string{"DEL04"}, Worst: explain.Error, Tags: []string{"server"},
		Apply: onLastServer("fault truncated")},
	{Name: "a server replies with other records", Want: []string{"DEL04"}, Worst: explain.Error,
		Allowed: []string{"TTL03"}, Tags: []string{"server", "cache"}, Apply: onLastServer("fault bogus")},
	{Name: "a server is silent", Want: []string{"DEL05"}, Tags: []string{"server"}, Apply: onLastServer("fault timeout")},
	{Name: "a server has no SOA record", Want: []string{"SOA08"}, Allowed: []string{"SOA09", "SRV01"},
		Tags: []string{"server", "soa"}, Apply: onDomain("nodata", "SOA")},
	{Name: "no server has an SOA record", Want: []string{"SOA08"}, Allowed: []string{"SOA09", "SRV01"},
		Tags: []string{"server", "soa"}, Apply: onAll("empty", "SOA")},
	{Name: "the zone has no NS records", Want: []string{"DEL03"}, Allowed: []string{"SOA09"},
		Tags: []string{"server", "ns"}, Apply: onAll("nodata", "NS")},
	{Name: "a server refuses MX", Want: []string{"SRV07"}, Tags: []string{"server"}, Apply: onDomain("refused", "MX")},
	{Name: "a server fails for TXT", Want: []string{"SRV07"}, Tags: []string{"server"},
		Apply: onDomain("servfail", "TXT")},
	{Name: "a server is silent for MX", Want: []string{"SRV07"}, Tags: []string{"server"},
		Apply: onDomain("timeout", "MX")},
	{Name: "a server does not implement TXT", Want: []string{"SRV07"}, Tags: []string{"server"},
		Apply: onDomain("notimp", "TXT")},
	{Name: "a server is not an authority for MX", Want: []string{"SRV07"}, Tags: []string{"server"},
		Apply: onDomain("modest", "MX")},
	{Name: "a server refuses DNSKEY", Want: []string{"SRV07"}, Allowed: []string{"SEC05", "SEC09"},
		Tags: []string{"server"}, Apply: onDomain("refused", "DNSKEY")},
	{Name: "a server truncates MX", Want: []string{"SRV07"}, Tags: []string{"server"}, Apply: onDomain("truncated", "MX")},
	{Name: "a server fails for A", Want: []string{"SRV07"}, By: explain.Scan, Tags: []string{"server", "name"},
		Apply: onDomain("servfail", "A")},
	{Name: "a server refuses AAAA", Want: []string{"SRV07"}, By: explain.Scan, Tags: []string{"server", "name"},
		Apply: onDomain("refused", "AAAA")},
	{Name: "no server answers for TXT", Want: []string{"SRV07"}, Worst: explain.Critical,
		Allowed: []string{"MAI03", "MAI04", "MAI05"}, Tags: []string{"server", "txt"}, Apply: onAll("servfail", "TXT")},
	{Name: "all servers truncate DNSKEY", Want: []string{"SRV07"}, Worst: explain.Critical,
		Allowed: []string{"SEC05", "SEC09", "SEC10"}, Tags: []string{"server"},
		Apply: ifSigned(onAll("truncated", "DNSKEY"))},
	{Name: "DNSKEY needs TCP, which no server has", Want: []string{"SRV07"}, Worst: explain.Critical,
		Allowed: []string{"DEL06", "SEC05", "SEC09", "SEC10", "SRV02"}, Tags: []string{"server"},
		Apply: ifSigned(func(t *Tree) bool {
			for _, h := range t.hosts {
				h.lines = append(h.lines, "only udp")
			}
			return onAll("truncate", "DNSKEY")(t)
		})},
	{Name: "no server has a usable DNSKEY reply", Want: []string{"SRV07"}, Worst: explain.Critical,
		Allowed: []string{"SEC05", "SEC09", "SEC10", "SOA09"}, Tags: []string{"server"},
		Apply: ifSigned(onAll("empty", "DNSKEY"))},
	{Name: "a server refers to the root", Want: []string{"DEL07"}, Allowed: []string{"DEL04"}, Tags: []string{"server"},
		Apply: onLastServer("fault lame")},
	{Name: "no TCP", Want: []string{"DEL06"}, Tags: []string{"server"}, Apply: onLastServer("only udp")},
	{Name: "open to recursion", Want: []string{"DEL15"}, Tags: []string{"server"},
		Apply: onLastServer("resolve " + rootAddr)},
	{Name: "open to transfers", Want: []string{"DEL16"}, Tags: []string{"server"}, Apply: onLastServer("transfers")},
	{Name: "no EDNS", Want: []string{"SRV01"}, Allowed: []string{"SEC04", "SEC03", "SEC10"},
		Tags: []string{"server", "dnssec"}, Apply: onLastServer("edns formerr")},
	{Name: "unusual EDNS is dropped", Want: []string{"SRV01"}, Tags: []string{"server"},
		Apply: onLastServer("edns brittle")},
	{Name: "case is not echoed", Want: []string{"SRV03"}, Tags: []string{"server"}, Apply: onLastServer("folds")},
	{Name: "unknown types are dropped", Want: []string{"SRV05"}, Allowed: []string{"DEL05", "SRV07"},
		Tags: []string{"server", "dnssec"}, Apply: onLastServer("ignorant")},
	{Name: "no SOA in negative answers", Want: []string{"SOA09"}, Tags: []string{"server", "dnssec"},
		Apply: onLastServer("bare")},
	{Name: "an empty name is denied", Want: []string{"NAM10"}, Tags: []string{"server", "name", "dnssec"},
		Apply: func(t *Tree) bool {
			t.Name = "x.ent." + t.Domain
			t.add("%s %d A 93.184.99.1", t.Name, t.ttl)
			for _, h := range t.hosts {
				h.lines = append(h.lines, "hollow")
			}
			return !t.signed
		}},
}
