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

// recent remembers which names of no rule were asked for lately. When a rule for one of them appears, the name is asked for
// again, behind the scenes: the pod that asked a moment too early has its address by then, and would ask again only when its
// TTL is over. The answer itself is not kept: to see it, every reply would have to pass through a writer of ours, and the
// `cache` plugin has it anyway.
//
// A name has one slot, by its hash. Nobody waits for a slot: who finds it taken leaves it alone.
type recent struct {
	slots [recentSlots]slot
	// now is the time, to the second or so. To ask the system for it would be the dearest part of a question of no rule.
	now atomic.Int64
}

type slot struct {
	busy  atomic.Bool // guards all below
	name  [255]byte   // in lower case
	n     uint8
	types uint8 // bits of learnable types that were asked for
	at    int64 // Unix time
	from  *Plugin
	client netip.AddrPort
}

// learnable are the types that are remembered, by their bits.
var learnable = [...]uint16{dns.TypeA, dns.TypeAAAA, dns.TypeHTTPS, dns.TypeSVCB}

// note remembers a question, without allocating.
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

// asked is a question that is asked again.
type recentQuery struct {
	name  string
	types []uint16
	from  *Plugin
	client netip.AddrPort
}

// all are the questions that are young enough.
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

// addrPort is the address of a client; the zero one when it has none of IP.
func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort()
	case *net.TCPAddr:
		return a.AddrPort()
	}
	return netip.AddrPort{}
}
