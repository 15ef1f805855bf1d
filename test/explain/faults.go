package explain

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
)

// Fault is one fault of a tree, and the checks that must find it.
type Fault struct {
	Name    string
	Want    []string           // checks that must fail
	By      explain.Kind       // the command that must find it; empty: any
	Worst   explain.Severity   // the worst severity that a scan of the domain finds; empty: any
	Allowed []string           // checks that may fail as a consequence
	Tags    []string           // parts of the tree that it changes: faults of one tree have no tag in common
	Apply   func(t *Tree) bool // changes the tree; false: not possible in this tree
	Twin    func(t *Tree) bool // a harmless change that is compared with the fault; nil: none
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

// onDomain returns a fault of the last server for one type at the apex.
func onDomain(kind, typ string) func(*Tree) bool {
	return func(t *Tree) bool { return onLastServer("fault " + kind + " " + t.Domain + " " + typ)(t) }
}

// onAll returns a fault of all servers for one type at the apex.
func onAll(kind, typ string) func(*Tree) bool {
	return func(t *Tree) bool {
		for _, h := range t.hosts {
			h.lines = append(h.lines, "fault "+kind+" "+t.Domain+" "+typ)
		}
		return true
	}
}

// ifSigned returns a fault that is possible only in signed trees.
func ifSigned(apply func(*Tree) bool) func(*Tree) bool {
	return func(t *Tree) bool { return t.signed && apply(t) }
}

// ifUnsigned returns a fault that is possible only in trees that are not signed.
func ifUnsigned(apply func(*Tree) bool) func(*Tree) bool {
	return func(t *Tree) bool { return !t.signed && apply(t) }
}

// onTLD returns a fault that adds lines to the script of the second server of the top-level domain.
func onTLD(lines ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.atTLD = append(t.atTLD, lines...)
		return true
	}
}

// setParentNS changes the nameservers that the parent's servers list.
func (t *Tree) setParentNS(ns []string) {
	for i := range t.parent {
		t.parent[i] = t.delegation(ns)
	}
}

// sixth gives the nameservers IPv6 addresses, except for the first n.
func (t *Tree) sixth(n int) bool {
	for i, h := range t.hosts[n:] {
		h.addr = fmt.Sprintf("2606:2800:20:%d::1", i)
	}
	t.setParentNS(t.childNS)
	return true
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

// rotating gives the name three addresses, of which each server sends one in rotation. A single answer of each server
// differs from the others then, though nothing is wrong.
func (t *Tree) rotating() bool {
	t.dropName()
	t.add("%s 300 A 93.184.99.5, 93.184.99.6, 93.184.99.7", t.Name)
	for _, h := range t.hosts {
		h.lines = append(h.lines, "part "+t.Name+" A 1")
	}
	return t.end == t.Name
}

// Faults lists all kinds of faults.
var Faults = slices.Concat(serverFaults, delegationFaults, addressFaults, zoneFaults, nameFaults, secureFaults,
	cacheFaults, mailFaults)

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

// allSOA returns a fault that changes the SOA of all servers. The serials stay: otherwise the fault would also be a
// server with an old version.
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

// nameFaults are faults of the records at the name. Faults in the addresses of one server need a name that is not an
// alias: its target may be on other servers.
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
	{Name: "a scan of an alias of nothing", Want: []string{"NAM06"}, By: explain.Scan, Tags: []string{"name", "cache"},
		Apply: func(t *Tree) bool {
			t.alias("gone.edge.net.")
			return true
		}},
	{Name: "a scan of a loop", Want: []string{"NAM05"}, By: explain.Scan, Allowed: []string{"NAM02"},
		Tags: []string{"name", "cache"}, Apply: func(t *Tree) bool {
			t.alias("back." + t.Domain)
			t.add("back.%s %d CNAME %s", t.Domain, t.ttl, t.Name)
			return true
		}},
	{Name: "a server denies an alias", Want: []string{"NAM11"}, By: explain.Scan, Allowed: []string{"TTL03", "TTL05"},
		Tags: []string{"name", "server", "dnssec", "cache"}, Apply: func(t *Tree) bool {
			t.alias("mail." + t.Domain)
			return onLastServer("drop " + t.Name)(t)
		}},
	{Name: "a server has other MX records", Want: []string{"NAM11"}, By: explain.Scan, Tags: []string{"server", "mx"},
		Apply: func(t *Tree) bool { return onLastServer("set " + t.Domain + " 3600 MX 20 a.dnshost.net.")(t) }},
	{Name: "a server has no TXT records", Want: []string{"NAM11"}, By: explain.Scan, Tags: []string{"server", "txt"},
		Apply: func(t *Tree) bool { return onLastServer("drop " + t.Domain + " TXT")(t) }},
	{Name: "a server always has one address more", Want: []string{"NAM11"}, Allowed: []string{"TTL05"},
		Tags: []string{"name", "server", "dnssec", "cache"}, Apply: func(t *Tree) bool {
			if t.end != t.Name {
				return false
			}
			t.dropName()
			t.add("%s %d A 93.184.99.5", t.Name, t.ttl)
			t.last().lines = append(t.last().lines, fmt.Sprintf("set %s %d A 93.184.99.5, 93.184.99.6", t.Name, t.ttl))
			return true
		}},
	{Name: "a server does not rotate as the others do", Want: []string{"NAM11"}, Allowed: []string{"TTL05"},
		Tags: []string{"name", "server", "dnssec", "cache"},
		Apply: func(t *Tree) bool {
			return t.rotating() && onLastServer("set "+t.Name+" 300 A 93.184.99.6")(t)
		},
		Twin: (*Tree).rotating},
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

// cacheFaults are cached or filtered answers of the last resolver. The other resolvers have the current answer: one
// cache must be found among many.
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

// Break returns a tree with one to three faults. Several faults in one tree show whether one of them hides another.
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
