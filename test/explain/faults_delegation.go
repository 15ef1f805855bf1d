package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
)

// delegationFaults are differences between parent and child, and bad nameservers. Allowed has the checks that see the
// same fault from the other side: a nameserver that only the parent lists is also a server that may not answer.
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
	{Name: "the parent lists one nameserver", Want: []string{"DEL02"}, Allowed: []string{"DEL03"}, Tags: []string{"ns"},
		Apply: func(t *Tree) bool {
			t.setParentNS(t.childNS[:1])
			return true
		}},
	{Name: "the zone lists one nameserver", Want: []string{"DEL02"}, Allowed: []string{"DEL03"}, Tags: []string{"ns"},
		Apply: func(t *Tree) bool {
			t.setParentNS(t.childNS)
			t.childNS = t.childNS[:1]
			return true
		}},
	{Name: "no nameserver has IPv4", Want: []string{"DEL20"}, Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
		return t.sixth(0)
	}},
	{Name: "one nameserver has IPv4", Want: []string{"DEL20"}, Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
		return t.sixth(1)
	}},
	{Name: "the parent's servers differ", Want: []string{"DEL19"}, Allowed: []string{"DEL03"}, Tags: []string{"ns"},
		Twin: func(t *Tree) bool { // another TTL is no difference
			t.parent[1][0] = strings.Replace(t.parent[1][0], "172800", "86400", 1)
			return true
		},
		Apply: func(t *Tree) bool {
			if len(t.hosts) < 3 {
				return false
			}
			t.parent[1] = t.delegation(t.childNS[:2])
			return true
		}},
	{Name: "a server of the parent denies the delegation", Want: []string{"DEL19"}, Allowed: []string{"REG07", "TTL03"},
		Tags: []string{"ns", "dnssec"}, Apply: func(t *Tree) bool {
			t.parent[1] = nil
			t.signed = false
			return true
		}},
	{Name: "a server of the parent has no DS", Want: []string{"DEL19"}, Tags: []string{"ns"},
		Apply: func(t *Tree) bool {
			t.staleDS = true
			return t.signed
		}},
	{Name: "a server of the parent has another DS too", Want: []string{"DEL19"}, Tags: []string{"ns"},
		Apply: ifSigned(func(t *Tree) bool {
			t.parent[1] = append(t.parent[1], "ds "+t.Domain+" 86400 other")
			return true
		})},
	{Name: "a server of the parent refuses", Want: []string{"DEL19"}, Tags: []string{"ns"}, Apply: onTLD("fault refused")},
	{Name: "a server of the parent fails", Want: []string{"DEL19"}, Tags: []string{"ns"}, Apply: onTLD("fault servfail")},
	{Name: "a server of the parent is silent", Want: []string{"DEL19"}, Tags: []string{"ns"},
		Apply: onTLD("fault timeout")},
	{Name: "a server of the parent truncates every reply", Want: []string{"DEL19"}, Tags: []string{"ns"},
		Apply: onTLD("fault truncated")},
	{Name: "a server of the parent has a wildcard instead", Want: []string{"DEL19"}, By: explain.Analyze,
		Allowed: []string{"REG07", "TTL03", "TTL02", "NAM09", "NAM11"}, Tags: []string{"ns", "dnssec", "cache", "name"},
		Apply: ifUnsigned(func(t *Tree) bool {
			t.parent[1] = []string{"*.com. 300 A 93.184.99.9"}
			return true
		})},
	{Name: "a root server denies the top-level domain", Want: []string{"DEL19"}, Allowed: []string{"TTL03"},
		Tags: []string{"ns", "cache", "name"}, Apply: secondRoot("drop com. NS", "drop com. DS"), Twin: secondRoot("")},
	{Name: "a server of the parent refuses DS", Want: []string{"DEL19"}, By: explain.Scan, Tags: []string{"ns"},
		Apply: ifSigned(func(t *Tree) bool { return onTLD("fault refused " + t.Domain + " DS")(t) })},
	{Name: "a server has no NS records", Want: []string{"DEL03"}, Worst: explain.Error, Tags: []string{"ns", "server"},
		Apply: func(t *Tree) bool { return onLastServer("drop " + t.Domain + " NS")(t) }},
	{Name: "no delegation", Want: []string{"DEL01"}, Allowed: []string{"NAM01", "REG07", "NAM02"},
		Tags: append([]string{"ns", "server", "name", "soa", "dnssec", "cache"}, mailTags...), Apply: func(t *Tree) bool {
			t.parent = [2][]string{}
			t.signed = false
			return true
		}},
}

// secondRoot returns a change that adds a second root server, with these lines in its script.
func secondRoot(lines ...string) func(*Tree) bool {
	return func(t *Tree) bool {
		t.root2 = lines
		return true
	}
}
