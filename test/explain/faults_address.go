package explain

import (
	"fmt"
	"strings"
)

// addressFaults are faults of the addresses of the nameservers, and of the sizes of replies.
var addressFaults = []Fault{
	{Name: "all nameservers have one address", Want: []string{"DEL02"}, Allowed: []string{"DEL17"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			for _, h := range t.hosts[1:] {
				h.addr, h.zone = t.hosts[0].addr, false
			}
			t.setParentNS(t.childNS)
			return true
		}},
	{Name: "all nameservers are in one network", Want: []string{"DEL17"}, Tags: []string{"ns", "server"},
		Apply: oneNetwork},
	{Name: "the parent lists nameservers in one network", Want: []string{"DEL17"}, Allowed: []string{"DEL03"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			if len(t.hosts) < 3 {
				return false
			}
			last := t.last().addr
			oneNetwork(t)
			t.last().addr = last
			t.setParentNS(t.childNS[:len(t.childNS)-1])
			return true
		}},
	{Name: "the parent lists no nameserver with IPv4", Want: []string{"DEL20"}, Allowed: []string{"DEL03", "DEL02"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			if len(t.hosts) < 4 {
				return false
			}
			t.sixth(2)
			t.setParentNS(t.childNS[2:])
			return true
		}},
	{Name: "no IPv4, and one nameserver does not exist", Want: []string{"DEL20"}, Allowed: []string{"DEL11"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			t.childNS = append(t.childNS, "gone.edge.net.")
			return t.sixth(0)
		}},
	{Name: "a nameserver with a special IPv4 address", Want: []string{"DEL14"},
		Allowed: []string{"DEL05", "DEL04"}, Tags: []string{"ns", "server"},
		Apply: lastAddress("10.1.2.3", "100.64.7.7", "169.254.9.9", "240.0.0.9", "192.0.0.170", "172.31.0.1", "0.0.0.9")},
	{Name: "a nameserver with a special IPv6 address", Want: []string{"DEL14"},
		Allowed: []string{"DEL05", "DEL04", "DEL20"}, Tags: []string{"ns", "server"},
		Apply: lastAddress("2002:5db8:101::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "64:ff9b:1::7", "fd00::7", "100::7")},
	{Name: "an internal name space is scanned as a public one", Want: []string{"DEL14"}, Tags: []string{"ns", "server"},
		Apply: (*Tree).internal, Twin: func(t *Tree) bool {
			t.Private = true
			return t.internal()
		}},
	{Name: "a large referral", Want: []string{"DEL18"}, Allowed: []string{"DEL02", "DEL17", "DEL20"},
		Tags: []string{"ns", "server"}, Apply: func(t *Tree) bool {
			if !t.inside() {
				return false
			}
			// Sixteen names with long labels of their own exceed 1232 bytes: compression shortens only the common suffix.
			label := strings.Repeat("x", 58)
			for i := range 16 {
				h := *t.hosts[i%len(t.hosts)]
				h.name, h.zone, h.lines = fmt.Sprintf("%s%d.%s", label, 10+i, t.Domain), false, nil
				t.hosts, t.childNS = append(t.hosts, &h), append(t.childNS, h.name)
			}
			t.setParentNS(t.childNS)
			return true
		}},
	{Name: "a server ignores the UDP size", Want: []string{"SRV02"}, Tags: []string{"server", "txt"},
		Apply: func(t *Tree) bool {
			t.add("%s 3600 TXT %s", t.Domain, quote(strings.Repeat("large ", 250)))
			return onLastServer("large")(t)
		},
		Twin: func(t *Tree) bool {
			t.add("%s 3600 TXT %s", t.Domain, quote(strings.Repeat("large ", 250)))
			return true
		}},
}

// oneNetwork gives all nameservers addresses in one /24. RFC 2182 §3.1 asks for servers in different networks; a /24
// is the smallest that is routed on its own.
func oneNetwork(t *Tree) bool {
	for i, h := range t.hosts {
		h.addr = fmt.Sprintf("93.100.50.%d", i+1)
	}
	t.setParentNS(t.childNS)
	return true
}

// lastAddress returns a fault that gives the last server one of these addresses: consecutive seeds have different ones.
func lastAddress(addrs ...string) func(*Tree) bool {
	return variants(func(t *Tree, addr string) {
		t.last().addr = addr
		t.setParentNS(t.childNS)
	}, addrs...)
}

// internal gives all nameservers and the name private addresses.
func (t *Tree) internal() bool {
	for i, h := range t.hosts {
		h.addr = fmt.Sprintf("10.%d.0.1", i+1)
	}
	t.setParentNS(t.childNS)
	return true
}
