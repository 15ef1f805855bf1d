package iterate

import (
	"net/netip"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Options are the limits and ways of a walk.
type Options struct {
	Hints    []Host          // the root servers to begin with
	Budget   *resolve.Budget // of queries
	MaxTime  time.Duration   // of the walk in all
	Timeouts []time.Duration // of the tries of a query
	Probe    string          // the label of names that are asked for to find wildcards; nobody has a record of it

	NoDNSSEC  bool   // do not ask for signatures
	Fast      bool   // be content with one good reply to each question
	Family    Family // leave out addresses of the other one; default: none
	RootAddrs int    // so many addresses of root servers are asked; default: all
}

// Bounds of every walk.
const (
	maxDepth   = 30 // referrals one below the other
	maxServers = 13 // of an NS set that are asked; the others are listed
	maxLookups = 20 // names of servers without glue that are looked up
)

// Family is a kind of addresses.
type Family string

// The families.
const (
	IPv4Only Family = "ipv4"
	IPv6Only Family = "ipv6"
)

func (f Family) has(a netip.Addr) bool { return f == "" || a.Is4() == (f == IPv4Only) }

// rootHints are the addresses of the root servers as IANA lists them.
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

// RootHints are the servers of the root of the public DNS.
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
