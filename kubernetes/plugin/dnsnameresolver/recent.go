package dnsnameresolver

import (
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

const (
	recentSlots = 4096
	recentAge   = 30 * time.Second
)

// recent remembers recent queries that matched no rule. When a rule for such a name appears, the plugin repeats the
// query in the background. The pod that asked just before already has the address, and would ask again only after its
// TTL. recent does not store the answers: every reply would have to pass through a writer of this plugin, and the
// `cache` plugin has the answers anyway.
//
// A name has one slot, selected by its hash. Queries never wait for a slot: if it is in use, they skip it.
type recent struct {
	slots [recentSlots]slot
	// now is the current time, updated every second. Reading the system clock would be the most expensive part of a query
	// that matches no rule.
	now atomic.Int64
}

type slot struct {
	busy   atomic.Bool // guards the fields below
	name   [255]byte   // lower case
	n      uint8
	types  uint8 // bit set of the queried types, in the order of learnable
	at     int64 // Unix time
	from   *Plugin
	client netip.AddrPort
}

// learnable lists the query types that are remembered.
var learnable = [...]uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeSVCB}

// note remembers a query. It does not allocate.
func (r *recent) note(p *Plugin, q dns.Question, client net.Addr) {
	if len(q.Name) > 255 {
		return
	}
	h := uint32(2166136261) // FNV-1a
	for i := range len(q.Name) {
		h = (h ^ uint32(dnsname.Lower(q.Name[i]))) * 16777619
	}
	s := &r.slots[h%recentSlots]
	if !s.busy.CompareAndSwap(false, true) {
		return
	}
	defer s.busy.Store(false)
	same := int(s.n) == len(q.Name)
	for i := range len(q.Name) {
		c := dnsname.Lower(q.Name[i])
		same = same && s.name[i] == c
		s.name[i] = c
	}
	if !same || s.from != p {
		s.types = 0
	}
	s.n, s.from, s.at = uint8(len(q.Name)), p, r.now.Load()
	for bit, t := range learnable {
		if t == q.Qtype {
			s.types |= 1 << bit
		}
	}
	s.client = addrPort(client)
}

// recentQuery is a query to repeat.
type recentQuery struct {
	name   string
	types  []uint16
	from   *Plugin
	client netip.AddrPort
}

// all returns the queries that are younger than recentAge.
func (r *recent) all() []recentQuery {
	var out []recentQuery
	now := r.now.Load()
	for i := range r.slots {
		s := &r.slots[i]
		if !s.busy.CompareAndSwap(false, true) {
			continue
		}
		if s.n > 0 && now-s.at < int64(recentAge/time.Second) {
			a := recentQuery{name: string(s.name[:s.n]), from: s.from, client: s.client}
			for bit, t := range learnable {
				if s.types&(1<<bit) != 0 {
					a.types = append(a.types, t)
				}
			}
			out = append(out, a)
		}
		s.busy.Store(false)
	}
	return out
}

// addrPort returns the address and port of a client, or the zero AddrPort if it is not an IP client.
func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort()
	case *net.TCPAddr:
		return a.AddrPort()
	}
	return netip.AddrPort{}
}
