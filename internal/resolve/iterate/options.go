package iterate

import (
	"net/netip"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Options are the limits and the modes of a walk.
type Options struct {
	Hints    []Host          // the root servers to start with
	Budget   *resolve.Budget // limits the number of queries
	MaxTime  time.Duration   // limit for the whole walk
	Timeouts []time.Duration // one for each try of a query
	Probe    string          // the label of names that are queried to find wildcards; no record may exist for it

	NoDNSSEC  bool   // do not request signatures
	Fast      bool   // stop after one usable reply to each question
	Family    Family // use only addresses of this family; default: all
	RootAddrs int    // number of addresses of root servers that are queried; default: all
}

// Limits of every walk.
const (
	maxDepth   = 30 // referrals below each other
	maxServers = 13 // servers of an NS set that are queried; the others are only listed
	maxLookups = 20 // server names without glue that are looked up
)

// Family is an address family.
type Family string

// The values of Family. Without one, servers are queried over both.
const (
	IPv4Only Family = "ipv4"
	IPv6Only Family = "ipv6"
)

func (f Family) has(a netip.Addr) bool { return f == "" || a.Is4() == (f == IPv4Only) }

// rootHints are the addresses of the root servers, as published by IANA.
const rootHints = `
a 198.41.0.4 2001:503:ba3e::2:30
b 170.247.170.2 2801:1b8:10::b
c 192.33.4.12 2001:500:2::c
d 199.7.91.13 2001:500:2d::d
e 192.203.230.10 2001:500:a8::e
f 192.5.5.241 2001:500:2f::f
g 192.112.36.4 2001:500:12::d0d
h 198.97.190.53 2001:500:1::53
i 192.36.148.17 2001:7fe::53
j 192.58.128.30 2001:503:c27::2:30
k 193.0.14.129 2001:7fd::1
l 199.7.83.42 2001:500:9f::42
m 202.12.27.33 2001:dc3::35
`

// RootHints returns the root servers of the public DNS.
func RootHints() (hints []Host) {
	for line := range strings.Lines(strings.TrimSpace(rootHints)) {
		words := strings.Fields(line)
		h := Host{Name: dnsname.MustParse(words[0] + ".root-servers.net.")}
		for _, a := range words[1:] {
			h.Glue = append(h.Glue, netip.MustParseAddr(a))
		}
		hints = append(hints, h)
	}
	return hints
}
