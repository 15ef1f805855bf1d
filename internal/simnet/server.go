package simnet

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Server is a scripted DNS server. It is an authority for its zones; for all else it may be a resolver with a cache.
type Server struct {
	net  *Net
	addr netip.AddrPort

	mu       sync.Mutex // guards the following
	zones    map[dnsname.Name]*dns.SOA
	sets     map[key][]dns.RR
	names    map[dnsname.Name]int // how many sets a name and the names below it have
	views    []view
	signers  map[dnsname.Name]*signer
	routes   map[dnsname.Name]netip.AddrPort
	cache    map[key]entry // of what is forwarded
	resolver *resolver     // nil: none
	asked    map[key]int   // how often
	later    []event       // in the order of their times
	manner   manner
}

// manner is how a server behaves.
type manner struct {
	slowest, fastest time.Duration // to reply
	loss             float64       // part of the queries that get none
	lazy             bool          // does not add what a CNAME leads to
	rotate           bool          // begins with another record each time
	cookies          bool          // wants its cookie with each query over UDP
	hollow           bool          // denies names that have nothing but names below them
	bare             bool          // leaves the SOA out of negative answers
	loose            bool          // sends it with a TTL that is not that of the answer
	folds            bool          // writes the question in lower case
	ignorant         bool          // does not reply to types that are newer than it is
	transfers        bool          // gives its zones to everyone
	subnets          bool          // answers for the subnet that a query names (RFC 7871)
	large            bool          // sends more over UDP than it was asked for
	edns             ednsManner
	nsid             string
	only             string         // "udp" or "tcp"
	source           netip.AddrPort // of its replies over UDP, if not its own address
	deaf             []netip.Prefix // clients that get no reply
	ttls             map[key][]uint32
	faults           []fault // the last that fits counts
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
		signers: map[dnsname.Name]*signer{}, routes: map[dnsname.Name]netip.AddrPort{}, cache: map[key]entry{}, asked: map[key]int{},
		manner: manner{ttls: map[key][]uint32{}}}
}

// speaks reports whether the server takes queries over a transport.
func (s *Server) speaks(tr resolve.Transport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	return s.manner.only == "" || (s.manner.only == "udp") == (tr == resolve.UDP)
}

// query is one that has arrived.
type query struct {
	key
	msg    *dns.Msg
	way    path
	client netip.Prefix                  // whom it is for: who sent it, or the subnet that it names
	scope  int                           // how much of that made the answer
	nth    int                           // time that it was asked
	wild   map[dnsname.Name]dnsname.Name // wildcards that names of the reply were made of
	reply  *dns.Msg

	instance int // of several behind one address, the one that answers; from 1
}

func (q *query) do() bool { opt := q.msg.IsEdns0(); return opt != nil && opt.Do() }

// serve replies to a query, as late as it likes.
func (s *Server) serve(ctx context.Context, way path, name dnsname.Name, msg *dns.Msg) (packet, error) {
	q := &query{key: key{name, msg.Question[0].Qtype}, msg: msg, way: way, client: netip.PrefixFrom(way.client, way.client.BitLen()),
		reply: new(dns.Msg).SetReply(msg)}
	q.reply.Compress = true
	fault, wait, work := s.receive(q)
	if fault == timeout {
		<-ctx.Done()
		return packet{}, ctx.Err()
	}
	if err := resolve.Sleep(ctx, wait); err != nil {
		return packet{}, err
	}
	if fault == unreachable {
		return packet{}, errUnreachable
	}
	if work != nil {
		if err := work(ctx, q); err != nil {
			return packet{}, err
		}
	}
	from := s.finish(q)
	fault.apply(q.reply, way.transport)
	return packet{msg: q.reply, from: from, damaged: fault == malformed}, nil
}

// receive judges a query when it arrives, and answers it from what the server knows at that moment. What it must ask others for
// is left as work.
func (s *Server) receive(q *query) (faultKind, time.Duration, func(context.Context, *query) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	s.asked[q.key]++
	q.nth = s.asked[q.key]
	chance := s.chanceLocked(q.key, q.way.transport)
	wait := s.manner.fastest + time.Duration(chance.Float64()*float64(s.manner.slowest-s.manner.fastest))
	if q.way.transport != resolve.UDP {
		wait *= 2 // the handshake
	}
	fault := s.manner.fault(q.key)
	if fault == none && q.way.transport == resolve.UDP && chance.Float64() < s.manner.loss || s.manner.ignores(q) {
		fault = timeout
	}
	s.manner.readSubnet(q)
	switch _, forwarded := s.routeLocked(q.name); {
	case forwarded:
		return fault, wait, s.forward
	case s.resolver != nil && s.zoneLocked(q.name) == nil:
		return fault, wait, s.resolve
	}
	s.answerLocked(q)
	return fault, wait, nil
}

// finish gives the reply the form that its query can take, and tells from where it is sent.
func (s *Server) finish(q *query) netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.manner.object(q) {
		s.manner.describe(q)
		s.manner.fit(q)
	}
	if s.manner.folds {
		q.reply.Question = []dns.Question{{Name: q.name.String(), Qtype: q.typ, Qclass: q.msg.Question[0].Qclass}}
	}
	if s.manner.source.IsValid() && q.way.transport == resolve.UDP {
		return s.manner.source
	}
	return s.addr
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
