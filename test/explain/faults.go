package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Fault is one fault of a tree, and the checks that must find it.
type Fault struct {
	Name    string
	Want    []string           // checks that must fail
	Allowed []string           // checks that may fail as a consequence
	Tags    []string           // parts of the tree that it changes: faults of one tree have no tag in common
	Apply   func(t *Tree) bool // changes the tree; false: not possible in this tree
}

// last returns the server that gets the faults of servers. There are at least two servers, and the first stays good.
func (t *Tree) last() *host { return t.hosts[len(t.hosts)-1] }

// onLastServer returns a fault that adds lines to the script of the last server.
func onLastServer(lines ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.last().lines = append(t.last().lines, lines...)
		return true
	}
}

// setParentNS changes the nameservers that the parent's servers list.
func (t *Tree) setParentNS(ns []string) {
	for i := range t.parent {
		t.parent[i] = t.delegation(ns)
	}
}

// alias replaces the records of the name by an alias.
func (t *Tree) alias(target string) {
	t.dropName()
	t.add("%s %d CNAME %s", t.Name, t.ttl, target)
}

// dropName deletes the records of the name.
func (t *Tree) dropName() {
	t.records = slices.DeleteFunc(t.records, func(l string) bool { return strings.HasPrefix(l, t.Name+" ") })
}

// Faults lists all kinds of faults.
var Faults = slices.Concat(serverFaults, delegationFaults, zoneFaults, nameFaults, secureFaults, cacheFaults)

// serverFaults are faults of the last server.
var serverFaults = []Fault{
	{Name: "a server refuses", Want: []string{"DEL04"}, Allowed: []string{"SOA09"}, Tags: []string{"server"},
		Apply: onLastServer("fault refused")},
	{Name: "a server fails", Want: []string{"DEL04"}, Tags: []string{"server"}, Apply: onLastServer("fault servfail")},
	{Name: "a server is not an authority", Want: []string{"DEL04"}, Tags: []string{"server"},
		Apply: onLastServer("fault modest")},
	{Name: "a server is silent", Want: []string{"DEL05"}, Tags: []string{"server"}, Apply: onLastServer("fault timeout")},
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
	{Name: "unknown types are dropped", Want: []string{"SRV05"}, Allowed: []string{"DEL05"},
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

// delegationFaults are differences between parent and child, and bad nameservers.
var delegationFaults = []Fault{
	{Name: "the parent lists one more", Want: []string{"DEL03"}, Allowed: []string{"DEL04", "DEL05", "REG07"},
		Tags: []string{"ns"}, Apply: func(t *Tree) bool {
			if len(t.hosts) < 3 {
				return false
			}
			t.childNS = t.childNS[:len(t.childNS)-1]
			return true
		}},
	{Name: "the child lists one more", Want: []string{"DEL03"}, Tags: []string{"ns"}, Apply: func(t *Tree) bool {
		if len(t.hosts) < 3 {
			return false
		}
		t.setParentNS(t.childNS[:len(t.childNS)-1])
		return true
	}},
	{Name: "one nameserver", Want: []string{"DEL02"}, Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
		t.hosts = t.hosts[:1]
		t.childNS = t.childNS[:1]
		t.setParentNS(t.childNS)
		return true
	}},
	{Name: "no glue", Want: []string{"DEL08"}, Allowed: []string{"DEL11", "DEL05"}, Tags: []string{"ns", "server"},
		Apply: func(t *Tree) bool {
			last := t.last()
			for i := range t.parent {
				t.parent[i] = slices.DeleteFunc(t.parent[i], func(l string) bool { return strings.HasPrefix(l, last.name+" ") })
			}
			return t.inside()
		}},
	{Name: "old glue", Want: []string{"DEL09"}, Allowed: []string{"DEL05"}, Tags: []string{"ns", "server"},
		Apply: func(t *Tree) bool {
			last := t.last()
			t.oldAddr = "45.33.9.9"
			for i := range t.parent {
				for j, l := range t.parent[i] {
					if strings.HasPrefix(l, last.name+" ") {
						t.parent[i][j] = fmt.Sprintf("%s 172800 A %s", last.name, t.oldAddr)
					}
				}
			}
			return t.inside()
		}},
	{Name: "a nameserver is an alias", Want: []string{"DEL10"}, Allowed: []string{"DEL11"}, Tags: []string{"ns"},
		Apply: func(t *Tree) bool {
			t.others[otherAddr] = append(t.others[otherAddr], "alias.edge.net. 300 CNAME a.dnshost.net.")
			t.childNS = append(t.childNS, "alias.edge.net.")
			t.setParentNS(t.childNS)
			return true
		}},
	{Name: "a nameserver does not exist", Want: []string{"DEL11"}, Tags: []string{"ns"}, Apply: func(t *Tree) bool {
		t.childNS = append(t.childNS, "gone.edge.net.")
		t.setParentNS(t.childNS)
		return true
	}},
	{Name: "a nameserver with a doubled suffix", Want: []string{"DEL11"}, Allowed: []string{"DEL08", "DEL03"},
		Tags: []string{"ns"}, Apply: func(t *Tree) bool {
			t.childNS = append(t.childNS, "ns9.dnshost.net."+t.Domain)
			t.setParentNS(t.childNS)
			return true
		}},
	{Name: "a private nameserver", Want: []string{"DEL14"}, Allowed: []string{"DEL05", "DEL04"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			t.last().addr = "10.1.2.3"
			t.setParentNS(t.childNS)
			return true
		}},
	{Name: "the parent's servers differ", Want: []string{"DEL19"}, Allowed: []string{"DEL03"}, Tags: []string{"ns"},
		Apply: func(t *Tree) bool {
			if len(t.hosts) < 3 {
				return false
			}
			t.parent[1] = t.delegation(t.childNS[:2])
			return true
		}},
	{Name: "no delegation", Want: []string{"DEL01"}, Allowed: []string{"NAM01", "REG07", "NAM02"},
		Tags: []string{"ns", "server", "name", "soa", "dnssec", "cache"}, Apply: func(t *Tree) bool {
			t.parent = [2][]string{}
			t.signed = false
			return true
		}},
}

// zoneFaults are bad SOA values, and differences between the servers of the zone.
var zoneFaults = []Fault{
	{Name: "long negative TTL", Want: []string{"SOA01"}, Allowed: []string{"SOA02"}, Tags: []string{"soa"},
		Apply: allSOA(func(s *soa) { s.ttl, s.minimum = 172800, 172800 })},
	{Name: "an old version at one server", Want: []string{"SOA03"}, Allowed: []string{"SEC09"},
		Tags: []string{"soa", "server", "dnssec"}, Apply: func(t *Tree) bool {
			t.last().soa.serial -= 100
			return true
		}},
	{Name: "retry is longer than refresh", Want: []string{"SOA05"}, Tags: []string{"soa"},
		Apply: allSOA(func(s *soa) { s.retry = s.refresh + 100 })},
	{Name: "secondaries give up too early", Want: []string{"SOA05"}, Tags: []string{"soa"},
		Apply: allSOA(func(s *soa) { s.expire = 7200 })},
	{Name: "@ in the contact", Want: []string{"SOA06"}, Tags: []string{"soa"},
		Apply: allSOA(func(s *soa) { s.rname = "host@" + strings.TrimPrefix(s.rname, `host\.`) })},
	{Name: "the primary does not exist", Want: []string{"SOA07"}, Tags: []string{"soa"},
		Apply: allSOA(func(s *soa) { s.mname = "gone.edge.net." })},
	{Name: "TTLs differ between servers", Want: []string{"TTL05"}, Tags: []string{"server", "ttl", "dnssec", "name"},
		Apply: func(t *Tree) bool {
			if t.end != t.Name {
				return false
			}
			for _, l := range t.records {
				if f := strings.Fields(l); f[0] == t.Name && f[2] == "A" {
					t.last().lines = append(t.last().lines, fmt.Sprintf("set %s %d A %s", t.Name, t.ttl+7, strings.Join(f[3:], " ")))
				}
			}
			return true
		}},
}

// allSOA returns a fault that changes the SOA of all servers.
func allSOA(change func(*soa)) func(*Tree) bool {
	return func(t *Tree) bool {
		change(&t.soa)
		for _, h := range t.hosts {
			serial := h.soa.serial
			change(&h.soa)
			h.soa.serial = serial
		}
		return true
	}
}

// nameFaults are faults of the records at the name.
var nameFaults = []Fault{
	{Name: "the name does not exist", Want: []string{"NAM01"}, Allowed: []string{"TTL04"}, Tags: []string{"name", "cache"},
		Apply: func(t *Tree) bool {
			t.Name = "nothing." + t.Domain
			return true
		}},
	{Name: "no addresses, but other records", Want: []string{"NAM02"}, Tags: []string{"name", "cache"},
		Apply: func(t *Tree) bool {
			t.Name = "text." + t.Domain
			t.add("%s %d TXT \"hello\"", t.Name, t.ttl)
			return true
		}},
	{Name: "a long chain", Want: []string{"NAM04"}, Tags: []string{"name"}, Apply: func(t *Tree) bool {
		t.alias("c0." + t.Domain)
		for i := range 9 {
			t.add("c%d.%s %d CNAME c%d.%s", i, t.Domain, t.ttl, i+1, t.Domain)
		}
		t.add("c9.%s %d A 93.184.99.2", t.Domain, t.ttl)
		return true
	}},
	{Name: "a loop", Want: []string{"NAM05"}, Allowed: []string{"NAM02"}, Tags: []string{"name", "cache"},
		Apply: func(t *Tree) bool {
			t.alias("back." + t.Domain)
			t.add("back.%s %d CNAME %s", t.Domain, t.ttl, t.Name)
			return true
		}},
	{Name: "an alias of nothing", Want: []string{"NAM06"}, Tags: []string{"name", "cache"}, Apply: func(t *Tree) bool {
		t.alias("gone.edge.net.")
		return true
	}},
	{Name: "servers have different addresses", Want: []string{"NAM11"}, Allowed: []string{"TTL05"},
		Tags: []string{"name", "server", "dnssec", "cache"}, Apply: func(t *Tree) bool {
			if t.end != t.Name {
				return false
			}
			t.last().lines = append(t.last().lines, fmt.Sprintf("set %s %d A 93.184.99.3", t.Name, t.ttl))
			return true
		}},
	{Name: "a private address", Want: []string{"NAM14"}, Tags: []string{"name"}, Apply: func(t *Tree) bool {
		t.dropName()
		t.add("%s %d A 192.168.1.10", t.Name, t.ttl)
		return true
	}},
	{Name: "a very short TTL", Want: []string{"TTL06"}, Tags: []string{"name", "ttl"}, Apply: func(t *Tree) bool {
		t.dropName()
		t.add("%s 5 A 93.184.99.4", t.Name)
		return true
	}},
	{Name: "a wildcard answers for the name", Want: []string{"NAM09"}, Tags: []string{"name", "ns"},
		Apply: func(t *Tree) bool {
			t.Name = "unmade." + t.Domain
			t.add("*.%s %d A 93.184.99.5", t.Domain, t.ttl)
			return true
		}},
	{Name: "an alias with other records", Want: []string{"NAM03"}, Tags: []string{"name", "dnssec"},
		Apply: func(t *Tree) bool {
			t.alias("mail." + t.Domain)
			t.add("%s %d MX 10 mail.%s", t.Name, t.ttl, t.Domain)
			return !t.signed
		}},
}

// secureFaults are DNSSEC faults. They apply to trees that are not signed, and sign them wrongly.
var secureFaults = []Fault{
	{Name: "a DS without its key", Want: []string{"SEC01"}, Allowed: []string{"SEC10", "SEC03"}, Tags: []string{"dnssec"},
		Apply: func(t *Tree) bool {
			t.signed = false
			t.ds = "ds " + t.Domain + " 86400 other"
			for _, h := range t.hosts {
				h.lines = append(h.lines, "sign "+t.Domain)
			}
			return true
		}},
	{Name: "a DS, and nothing is signed", Want: []string{"SEC02"}, Allowed: []string{"SEC01", "SEC10"},
		Tags: []string{"dnssec"}, Apply: func(t *Tree) bool {
			t.signed = false
			t.ds = "ds " + t.Domain + " 86400"
			return true
		}},
	{Name: "expired signatures", Want: []string{"SEC03"}, Allowed: []string{"SEC04", "SEC10", "SEC01"},
		Tags: []string{"dnssec"}, Apply: resign("expired")},
	{Name: "signatures of tomorrow", Want: []string{"SEC03"}, Allowed: []string{"SEC04", "SEC10", "SEC01"},
		Tags: []string{"dnssec"}, Apply: resign("early")},
	{Name: "signed without a DS", Want: []string{"SEC07"}, Tags: []string{"dnssec"}, Apply: func(t *Tree) bool {
		t.signed = false
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain)
		}
		return true
	}},
}

// resign returns a fault that signs the zone wrongly, with a correct DS.
func resign(word string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.signed = false
		t.ds = "ds " + t.Domain + " 86400"
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain+" "+word)
		}
		return true
	}
}

// cacheFaults are cached or filtered answers of the last resolver.
var cacheFaults = []Fault{
	{Name: "a resolver has the old address", Want: []string{"TTL02"}, Allowed: []string{"TTL09"},
		Tags: []string{"cache", "name"}, Apply: func(t *Tree) bool {
			t.onLastResolver(fmt.Sprintf("hold %s 200 A 93.184.98.1", t.Name))
			return t.end == t.Name
		}},
	{Name: "a resolver caches that there is none", Want: []string{"TTL03"}, Tags: []string{"cache", "name"},
		Apply: func(t *Tree) bool {
			t.onLastResolver(fmt.Sprintf("deny %s 200 * %s %d", t.Name, t.Domain, t.soa.serial))
			return true
		}},
	{Name: "a resolver filters", Want: []string{"VAN02"}, Tags: []string{"cache"}, Apply: func(t *Tree) bool {
		t.onLastResolver(fmt.Sprintf("filter %s nxdomain 17", t.Domain))
		return true
	}},
}

// onLastResolver adds a line to the script of the last resolver.
func (t *Tree) onLastResolver(line string) {
	r := resolverAddrs[len(resolverAddrs)-1]
	t.caches[r] = append(t.caches[r], line)
}

// Break returns a tree with one to three faults.
func Break(seed uint64) (*Tree, []Fault) {
	rng := rand.New(rand.NewPCG(seed, 23))
	t := Healthy(seed)
	want := 1 + rng.IntN(3)
	var applied []Fault
	used := map[string]bool{}
	// Many faults exclude each other, so this may give up before it has found enough.
	for range 40 {
		if len(applied) == want {
			break
		}
		f := Faults[rng.IntN(len(Faults))]
		if slices.ContainsFunc(f.Tags, func(tag string) bool { return used[tag] }) ||
			slices.Contains(f.Tags, "dnssec") && t.signed {
			continue
		}
		// A fault that turns out not to be possible may have changed shared slices: rebuild discards its changes.
		next := *t
		if !f.Apply(&next) {
			t = rebuild(seed, applied)
			continue
		}
		*t = next
		applied = append(applied, f)
		t.Faults = append(t.Faults, f.Name)
		for _, tag := range f.Tags {
			used[tag] = true
		}
	}
	return t, applied
}

// rebuild applies the faults to a new tree. This removes the changes of a fault that turned out not to be possible.
func rebuild(seed uint64, applied []Fault) *Tree {
	t := Healthy(seed)
	for _, f := range applied {
		f.Apply(t)
		t.Faults = append(t.Faults, f.Name)
	}
	return t
}
