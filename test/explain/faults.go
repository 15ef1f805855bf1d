package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Fault is one thing that is wrong, and the checks that must find it.
type Fault struct {
	Name string
	Want []string           // checks that must fail
	May  []string           // checks that may fail, because one thing leads to another
	Tags []string           // what it touches: faults that touch the same do not come together
	Make func(t *Tree) bool // false: not in this tree
}

// last is the server that faults of servers are given to: there are at least two, and the first stays good.
func (t *Tree) last() *host { return t.hosts[len(t.hosts)-1] }

// behave gives the last server a line.
func behave(lines ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.last().lines = append(t.last().lines, lines...)
		return true
	}
}

// reparent gives the parent's servers another list of nameservers.
func (t *Tree) reparent(ns []string) {
	for i := range t.parent {
		t.parent[i] = t.delegation(ns)
	}
}

// end sets the alias at the name.
func (t *Tree) alias(target string) {
	t.dropName()
	t.add("%s %d CNAME %s", t.Name, t.ttl, target)
}

// dropName takes the records of the name away.
func (t *Tree) dropName() {
	t.records = slices.DeleteFunc(t.records, func(l string) bool { return strings.HasPrefix(l, t.Name+" ") })
}

// Faults are the kinds of faults.
var Faults = slices.Concat(serverFaults, delegationFaults, zoneFaults, nameFaults, secureFaults, cacheFaults)

var serverFaults = []Fault{
	{Name: "a server refuses", Want: []string{"DEL04"}, May: []string{"SOA09"}, Tags: []string{"server"}, Make: behave("fault refused")},
	{Name: "a server fails", Want: []string{"DEL04"}, Tags: []string{"server"}, Make: behave("fault servfail")},
	{Name: "a server is not an authority", Want: []string{"DEL04"}, Tags: []string{"server"}, Make: behave("fault modest")},
	{Name: "a server is silent", Want: []string{"DEL05"}, Tags: []string{"server"}, Make: behave("fault timeout")},
	{Name: "a server refers to the root", Want: []string{"DEL07"}, May: []string{"DEL04"}, Tags: []string{"server"}, Make: behave("fault lame")},
	{Name: "no TCP", Want: []string{"DEL06"}, Tags: []string{"server"}, Make: behave("only udp")},
	{Name: "open to recursion", Want: []string{"DEL15"}, Tags: []string{"server"}, Make: behave("resolve " + rootAddr)},
	{Name: "open to transfers", Want: []string{"DEL16"}, Tags: []string{"server"}, Make: behave("transfers")},
	{Name: "no EDNS", Want: []string{"SRV01"}, May: []string{"SEC04", "SEC03", "SEC10"}, Tags: []string{"server", "dnssec"}, Make: behave("edns formerr")},
	{Name: "unusual EDNS is dropped", Want: []string{"SRV01"}, Tags: []string{"server"}, Make: behave("edns brittle")},
	{Name: "case is not echoed", Want: []string{"SRV03"}, Tags: []string{"server"}, Make: behave("folds")},
	{Name: "unknown types are dropped", Want: []string{"SRV05"}, May: []string{"DEL05"}, Tags: []string{"server", "dnssec"}, Make: behave("ignorant")},
	{Name: "no SOA in negative answers", Want: []string{"SOA09"}, Tags: []string{"server", "dnssec"}, Make: behave("bare")},
	{Name: "an empty name is denied", Want: []string{"NAM10"}, Tags: []string{"server", "name", "dnssec"}, Make: func(t *Tree) bool {
		t.Name = "x.ent." + t.Domain
		t.add("%s %d A 93.184.99.1", t.Name, t.ttl)
		for _, h := range t.hosts {
			h.lines = append(h.lines, "hollow")
		}
		return !t.signed
	}},
}

var delegationFaults = []Fault{
	{Name: "the parent lists one more", Want: []string{"DEL03"}, May: []string{"DEL04", "DEL05", "REG07"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		if len(t.hosts) < 3 {
			return false
		}
		t.childNS = t.childNS[:len(t.childNS)-1]
		return true
	}},
	{Name: "the child lists one more", Want: []string{"DEL03"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		if len(t.hosts) < 3 {
			return false
		}
		t.reparent(t.childNS[:len(t.childNS)-1])
		return true
	}},
	{Name: "one nameserver", Want: []string{"DEL02"}, Tags: []string{"ns", "server"}, Make: func(t *Tree) bool {
		t.hosts = t.hosts[:1]
		t.childNS = t.childNS[:1]
		t.reparent(t.childNS)
		return true
	}},
	{Name: "no glue", Want: []string{"DEL08"}, May: []string{"DEL11", "DEL05"}, Tags: []string{"ns", "server"}, Make: func(t *Tree) bool {
		last := t.last()
		for i := range t.parent {
			t.parent[i] = slices.DeleteFunc(t.parent[i], func(l string) bool { return strings.HasPrefix(l, last.name+" ") })
		}
		return t.inside()
	}},
	{Name: "old glue", Want: []string{"DEL09"}, May: []string{"DEL05"}, Tags: []string{"ns", "server"}, Make: func(t *Tree) bool {
		last := t.last()
		t.old = "45.33.9.9"
		for i := range t.parent {
			for j, l := range t.parent[i] {
				if strings.HasPrefix(l, last.name+" ") {
					t.parent[i][j] = fmt.Sprintf("%s 172800 A %s", last.name, t.old)
				}
			}
		}
		return t.inside()
	}},
	{Name: "a nameserver is an alias", Want: []string{"DEL10"}, May: []string{"DEL11"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		t.others[otherAddr] = append(t.others[otherAddr], "alias.edge.net. 300 CNAME a.dnshost.net.")
		t.childNS = append(t.childNS, "alias.edge.net.")
		t.reparent(t.childNS)
		return true
	}},
	{Name: "a nameserver does not exist", Want: []string{"DEL11"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		t.childNS = append(t.childNS, "gone.edge.net.")
		t.reparent(t.childNS)
		return true
	}},
	{Name: "a nameserver with a doubled suffix", Want: []string{"DEL11"}, May: []string{"DEL08", "DEL03"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		t.childNS = append(t.childNS, "ns9.dnshost.net."+t.Domain)
		t.reparent(t.childNS)
		return true
	}},
	{Name: "a private nameserver", Want: []string{"DEL14"}, May: []string{"DEL05", "DEL04"}, Tags: []string{"ns", "server"}, Make: func(t *Tree) bool {
		t.last().addr = "10.1.2.3"
		t.reparent(t.childNS)
		return true
	}},
	{Name: "the parent's servers differ", Want: []string{"DEL19"}, May: []string{"DEL03"}, Tags: []string{"ns"}, Make: func(t *Tree) bool {
		if len(t.hosts) < 3 {
			return false
		}
		t.parent[1] = t.delegation(t.childNS[:2])
		return true
	}},
	{Name: "no delegation", Want: []string{"DEL01"}, May: []string{"NAM01", "REG07", "NAM02"}, Tags: []string{"ns", "server", "name", "soa", "dnssec", "cache"}, Make: func(t *Tree) bool {
		t.parent = [2][]string{}
		t.signed = false
		return true
	}},
}

var zoneFaults = []Fault{
	{Name: "long negative TTL", Want: []string{"SOA01"}, May: []string{"SOA02"}, Tags: []string{"soa"}, Make: allSOA(func(s *soa) { s.ttl, s.minimum = 172800, 172800 })},
	{Name: "an old version at one server", Want: []string{"SOA03"}, May: []string{"SEC09"}, Tags: []string{"soa", "server", "dnssec"}, Make: func(t *Tree) bool {
		t.last().soa.serial -= 100
		return true
	}},
	{Name: "retry is longer than refresh", Want: []string{"SOA05"}, Tags: []string{"soa"}, Make: allSOA(func(s *soa) { s.retry = s.refresh + 100 })},
	{Name: "secondaries give up too early", Want: []string{"SOA05"}, Tags: []string{"soa"}, Make: allSOA(func(s *soa) { s.expire = 7200 })},
	{Name: "@ in the contact", Want: []string{"SOA06"}, Tags: []string{"soa"}, Make: allSOA(func(s *soa) { s.rname = "host@" + strings.TrimPrefix(s.rname, `host\.`) })},
	{Name: "the primary does not exist", Want: []string{"SOA07"}, Tags: []string{"soa"}, Make: allSOA(func(s *soa) { s.mname = "gone.edge.net." })},
	{Name: "TTLs differ between servers", Want: []string{"TTL05"}, Tags: []string{"server", "ttl", "dnssec", "name"}, Make: func(t *Tree) bool {
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

// allSOA changes the SOA of all servers.
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

var nameFaults = []Fault{
	{Name: "the name does not exist", Want: []string{"NAM01"}, May: []string{"TTL04"}, Tags: []string{"name", "cache"}, Make: func(t *Tree) bool {
		t.Name = "nothing." + t.Domain
		return true
	}},
	{Name: "no addresses, but other records", Want: []string{"NAM02"}, Tags: []string{"name", "cache"}, Make: func(t *Tree) bool {
		t.Name = "text." + t.Domain
		t.add("%s %d TXT \"hello\"", t.Name, t.ttl)
		return true
	}},
	{Name: "a long chain", Want: []string{"NAM04"}, Tags: []string{"name"}, Make: func(t *Tree) bool {
		t.alias("c0." + t.Domain)
		for i := range 9 {
			t.add("c%d.%s %d CNAME c%d.%s", i, t.Domain, t.ttl, i+1, t.Domain)
		}
		t.add("c9.%s %d A 93.184.99.2", t.Domain, t.ttl)
		return true
	}},
	{Name: "a loop", Want: []string{"NAM05"}, May: []string{"NAM02"}, Tags: []string{"name", "cache"}, Make: func(t *Tree) bool {
		t.alias("back." + t.Domain)
		t.add("back.%s %d CNAME %s", t.Domain, t.ttl, t.Name)
		return true
	}},
	{Name: "an alias of nothing", Want: []string{"NAM06"}, Tags: []string{"name", "cache"}, Make: func(t *Tree) bool {
		t.alias("gone.edge.net.")
		return true
	}},
	{Name: "servers have different addresses", Want: []string{"NAM11"}, May: []string{"TTL05"}, Tags: []string{"name", "server", "dnssec", "cache"}, Make: func(t *Tree) bool {
		if t.end != t.Name {
			return false
		}
		t.last().lines = append(t.last().lines, fmt.Sprintf("set %s %d A 93.184.99.3", t.Name, t.ttl))
		return true
	}},
	{Name: "a private address", Want: []string{"NAM14"}, Tags: []string{"name"}, Make: func(t *Tree) bool {
		t.dropName()
		t.add("%s %d A 192.168.1.10", t.Name, t.ttl)
		return true
	}},
	{Name: "a very short TTL", Want: []string{"TTL06"}, Tags: []string{"name", "ttl"}, Make: func(t *Tree) bool {
		t.dropName()
		t.add("%s 5 A 93.184.99.4", t.Name)
		return true
	}},
	{Name: "a wildcard in the way", Want: []string{"NAM09"}, Tags: []string{"name", "ns"}, Make: func(t *Tree) bool {
		t.Name = "unmade." + t.Domain
		t.add("*.%s %d A 93.184.99.5", t.Domain, t.ttl)
		return true
	}},
	{Name: "an alias with other records", Want: []string{"NAM03"}, Tags: []string{"name", "dnssec"}, Make: func(t *Tree) bool {
		t.alias("mail." + t.Domain)
		t.add("%s %d MX 10 mail.%s", t.Name, t.ttl, t.Domain)
		return !t.signed
	}},
}

var secureFaults = []Fault{
	{Name: "a DS without its key", Want: []string{"SEC01"}, May: []string{"SEC10", "SEC03"}, Tags: []string{"dnssec"}, Make: func(t *Tree) bool {
		t.signed = false
		t.ds = "ds " + t.Domain + " 86400 other"
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain)
		}
		return true
	}},
	{Name: "a DS, and nothing is signed", Want: []string{"SEC02"}, May: []string{"SEC01", "SEC10"}, Tags: []string{"dnssec"}, Make: func(t *Tree) bool {
		t.signed = false
		t.ds = "ds " + t.Domain + " 86400"
		return true
	}},
	{Name: "expired signatures", Want: []string{"SEC03"}, May: []string{"SEC04", "SEC10", "SEC01"}, Tags: []string{"dnssec"}, Make: resign("expired")},
	{Name: "signatures of tomorrow", Want: []string{"SEC03"}, May: []string{"SEC04", "SEC10", "SEC01"}, Tags: []string{"dnssec"}, Make: resign("early")},
	{Name: "signed without a DS", Want: []string{"SEC07"}, Tags: []string{"dnssec"}, Make: func(t *Tree) bool {
		t.signed = false
		for _, h := range t.hosts {
			h.lines = append(h.lines, "sign "+t.Domain)
		}
		return true
	}},
}

// resign signs the zone in a way that is wrong, with a DS that is right.
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

var cacheFaults = []Fault{
	{Name: "a resolver has the old address", Want: []string{"TTL02"}, May: []string{"TTL09"}, Tags: []string{"cache", "name"}, Make: func(t *Tree) bool {
		t.hold(fmt.Sprintf("hold %s 200 A 93.184.98.1", t.Name))
		return t.end == t.Name
	}},
	{Name: "a resolver remembers that there is none", Want: []string{"TTL03"}, Tags: []string{"cache", "name"}, Make: func(t *Tree) bool {
		t.hold(fmt.Sprintf("deny %s 200 * %s %d", t.Name, t.Domain, t.soa.serial))
		return true
	}},
	{Name: "a resolver filters", Want: []string{"VAN02"}, Tags: []string{"cache"}, Make: func(t *Tree) bool {
		t.hold(fmt.Sprintf("filter %s nxdomain 17", t.Domain))
		return true
	}},
}

// hold gives the last resolver a line.
func (t *Tree) hold(line string) {
	r := resolverAddrs[len(resolverAddrs)-1]
	t.caches[r] = append(t.caches[r], line)
}

// Break makes a tree with one to three faults.
func Break(seed uint64) (*Tree, []Fault) {
	rng := rand.New(rand.NewPCG(seed, 23))
	t := Healthy(seed)
	want := 1 + rng.IntN(3)
	var made []Fault
	used := map[string]bool{}
	for range 40 {
		if len(made) == want {
			break
		}
		f := Faults[rng.IntN(len(Faults))]
		if slices.ContainsFunc(f.Tags, func(tag string) bool { return used[tag] }) || slices.Contains(f.Tags, "dnssec") && t.signed {
			continue
		}
		next := *t
		if !f.Make(&next) {
			t = rebuilt(seed, made)
			continue
		}
		*t = next
		made = append(made, f)
		t.Faults = append(t.Faults, f.Name)
		for _, tag := range f.Tags {
			used[tag] = true
		}
	}
	return t, made
}

// rebuilt is the tree with these faults again: what a fault began that then did not fit is gone.
func rebuilt(seed uint64, made []Fault) *Tree {
	t := Healthy(seed)
	for _, f := range made {
		f.Make(t)
		t.Faults = append(t.Faults, f.Name)
	}
	return t
}
