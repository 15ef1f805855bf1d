package simnet

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Server is a scripted DNS server. It is an authority for its zones; for what it forwards it is a resolver with a cache.
type Server struct {
	net  *Net
	addr netip.AddrPort

	mu     sync.Mutex // guards the following
	zones  map[dnsname.Name]*dns.SOA
	sets   map[key][]dns.RR
	names  map[dnsname.Name]int // how many sets a name and the names below it have
	routes map[dnsname.Name]netip.AddrPort
	cache  map[key]cached
	asked  map[key]int // how often
	later  []event     // in the order of their times
	manner manner
}

// manner is how a server behaves.
type manner struct {
	slowest, fastest time.Duration // to reply
	loss             float64       // part of the queries that get none
	lazy             bool          // does not add what a CNAME leads to
	rotate           bool          // begins with another record each time
	plain            bool          // takes no EDNS
	cookies          bool          // wants its cookie with each query over UDP
	hollow           bool          // denies names that have nothing but names below them
	faults           []fault       // the last that fits counts
}

type key struct {
	name dnsname.Name
	typ  uint16
}

// event is a command that waits for its time.
type event struct {
	at time.Duration
	do command
}

func newServer(n *Net, addr netip.AddrPort) *Server {
	return &Server{net: n, addr: addr, zones: map[dnsname.Name]*dns.SOA{}, sets: map[key][]dns.RR{}, names: map[dnsname.Name]int{},
		routes: map[dnsname.Name]netip.AddrPort{}, cache: map[key]cached{}, asked: map[key]int{}}
}

// Addr is where the server is.
func (s *Server) Addr() resolve.Server { return resolve.Server{Addr: s.addr} }

// serve replies to a query, as late as it likes.
func (s *Server) serve(ctx context.Context, tr resolve.Transport, name dnsname.Name, query *dns.Msg) (packet, error) {
	r := new(dns.Msg).SetReply(query)
	r.Compress = true
	fault, wait := s.receive(tr, name, r)
	if fault == timeout {
		<-ctx.Done()
		return packet{}, ctx.Err()
	}
	if err := sleep(ctx, wait); err != nil {
		return packet{}, err
	}
	if fault == unreachable {
		return packet{}, errUnreachable
	}
	if to, ok := s.route(name); ok {
		if err := s.forward(ctx, to, name, r); err != nil {
			return packet{}, err
		}
	}
	if !s.objects(r, query, tr) {
		fit(r, query, tr)
	}
	fault.apply(r, tr)
	return packet{msg: r, damaged: fault == malformed}, nil
}

// objects reports whether the reply is about how the query was put.
func (s *Server) objects(r, query *dns.Msg, tr resolve.Transport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.manner
	m.cookies = m.cookies && tr == resolve.UDP
	return m.object(r, query)
}

// receive judges a query when it arrives, and answers it from what the server knows at that moment.
func (s *Server) receive(tr resolve.Transport, name dnsname.Name, r *dns.Msg) (faultKind, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	k := key{name, r.Question[0].Qtype}
	s.asked[k]++
	chance := s.chanceLocked(k, tr)
	wait := s.manner.fastest + time.Duration(chance.Float64()*float64(s.manner.slowest-s.manner.fastest))
	if tr != resolve.UDP {
		wait *= 2 // the handshake
	}
	fault := s.manner.fault(k)
	if fault == none && tr == resolve.UDP && chance.Float64() < s.manner.loss {
		fault = timeout
	}
	if _, forwarded := s.routeLocked(name); !forwarded {
		s.answerLocked(k, r)
	}
	return fault, wait
}

// catchUpLocked does the commands whose time has come.
func (s *Server) catchUpLocked() {
	age := s.net.Age()
	for len(s.later) > 0 && s.later[0].at <= age {
		do := s.later[0].do
		s.later = s.later[1:]
		do(s)
	}
}

// chanceLocked is the source of chance for a question, the same whenever it is asked for the n-th time.
func (s *Server) chanceLocked(k key, tr resolve.Transport) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, s.addr, tr, k.name.Wire(), k.typ, s.asked[k])
	return rand.New(rand.NewPCG(s.net.seed, h.Sum64()))
}

// zoneLocked is the SOA record of the deepest zone that a name is in; nil if it is in none.
func (s *Server) zoneLocked(name dnsname.Name) *dns.SOA {
	for n := name; !n.IsZero(); n = n.Parent() {
		if soa := s.zones[n]; soa != nil {
			return soa
		}
	}
	return nil
}

// answerLocked answers as an authority does (RFC 1034 §4.3.2), without wildcards.
func (s *Server) answerLocked(k key, r *dns.Msg) {
	r.Authoritative = true
	if s.zoneLocked(k.name) == nil {
		r.Authoritative, r.Rcode = false, dns.RcodeRefused
		return
	}
	for seen := map[dnsname.Name]bool{}; !seen[k.name]; {
		seen[k.name] = true
		soa := s.zoneLocked(k.name)
		set, alias := s.setLocked(k), s.sets[key{k.name, dns.TypeCNAME}]
		switch {
		case soa == nil: // a CNAME led out of what we know
			return
		case s.referLocked(k, r):
			return
		case len(set) > 0:
			s.addLocked(r, k, set)
			s.primeLocked(set, r)
			return
		case len(alias) > 0:
			s.addLocked(r, k, alias)
			if s.manner.lazy {
				return
			}
			k.name = dnsname.MustParse(alias[0].(*dns.CNAME).Target)
		case s.dnameLocked(k.name) != nil:
			set = s.dnameLocked(k.name)
			s.addLocked(r, key{}, set)
			k.name = dnsname.MustParse(set[1].(*dns.CNAME).Target)
		default:
			if s.names[k.name] == 0 && s.zones[k.name] == nil || s.manner.hollow && !s.hasLocked(k.name) {
				r.Rcode = dns.RcodeNameError
			}
			r.Ns = append(r.Ns, negative(soa))
			return
		}
	}
}

// setLocked are the records of a name and type; each zone has an SOA record without being told.
func (s *Server) setLocked(k key) []dns.RR {
	if soa := s.zones[k.name]; soa != nil && k.typ == dns.TypeSOA && len(s.sets[k]) == 0 {
		return []dns.RR{soa}
	}
	return s.sets[k]
}

// hasLocked reports whether a name has records itself.
func (s *Server) hasLocked(name dnsname.Name) bool {
	for k := range s.sets {
		if k.name == name {
			return true
		}
	}
	return s.zones[name] != nil
}

// addLocked adds copies of the records of a set, so that nobody can change ours.
func (s *Server) addLocked(r *dns.Msg, k key, set []dns.RR) {
	first := 0
	if s.manner.rotate {
		first = s.asked[k] % len(set)
	}
	for i := range set {
		r.Answer = append(r.Answer, dns.Copy(set[(first+i)%len(set)]))
	}
}

// negative is the SOA record of a negative answer (RFC 2308 §3).
func negative(soa *dns.SOA) dns.RR {
	c := dns.Copy(soa).(*dns.SOA)
	c.Hdr.Ttl = min(c.Hdr.Ttl, c.Minttl)
	return c
}

// fit gives the reply an OPT record if the query has one, and cuts it off if it is too large.
func fit(r, query *dns.Msg, tr resolve.Transport) {
	size := dns.MinMsgSize
	if opt := query.IsEdns0(); opt != nil {
		size = max(size, int(opt.UDPSize()))
		if r.IsEdns0() == nil {
			r.SetEdns0(1232, opt.Do())
		}
	}
	if tr == resolve.UDP && r.Len() > size {
		cut(r)
	}
}

func cut(r *dns.Msg) { r.Truncated, r.Answer, r.Ns, r.Extra = true, nil, nil, onlyOPT(r) }

// onlyOPT is the additional section without addresses.
func onlyOPT(r *dns.Msg) []dns.RR {
	if opt := r.IsEdns0(); opt != nil {
		return []dns.RR{opt}
	}
	return nil
}

// put replaces the records of a name and type; none remove it.
func (s *Server) putLocked(k key, set []dns.RR) {
	was := len(s.sets[k]) > 0
	s.sets[k] = slices.Clip(set)
	step := 0
	switch is := len(set) > 0; {
	case is && !was:
		step = 1
	case !is && was:
		step = -1
		delete(s.sets, k)
	}
	for n := k.name; step != 0 && !n.IsZero(); n = n.Parent() {
		s.names[n] += step
	}
}
