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

// Server is a scripted DNS server. It is an authority for its zones. For other names it may be a caching resolver.
type Server struct {
	net  *Net
	addr netip.AddrPort

	mu        sync.Mutex // guards the following
	zones     map[dnsname.Name]*dns.SOA
	sets      map[key][]dns.RR
	names     map[dnsname.Name]int // number of sets that a name and the names below it have
	views     []view
	signers   map[dnsname.Name]*signer
	routes    map[dnsname.Name]netip.AddrPort
	cache     map[key]entry // replies of forwarded queries
	resolver  *resolver     // nil if the server is not a resolver
	asked     map[key]int   // number of queries
	scheduled []event       // scheduled commands in the order of their times
	behavior  behavior
}

// behavior has the settings for the behavior of a server. See Do for the commands.
type behavior struct {
	slowest, fastest time.Duration // limits of the latency
	loss             float64       // share of the queries that get no reply
	lazy             bool          // does not follow CNAMEs
	rotate           bool          // begins with a different record each time
	cookies          bool          // requires a server cookie with each query over UDP
	hollow           bool          // denies empty non-terminals
	bare             bool          // sends negative answers without the SOA
	loose            bool          // sends the SOA of negative answers with its own TTL
	folds            bool          // sends the question in lower case
	ignorant         bool          // does not reply to types that it does not know
	transfers        bool          // allows zone transfers
	subnets          bool          // uses the client subnet option (RFC 7871)
	large            bool          // exceeds the size limit of the client over UDP
	edns             ednsBehavior
	nsid             string
	only             string         // "udp" or "tcp"
	source           netip.AddrPort // source address of replies over UDP, if not its own
	deaf             []netip.Prefix // clients that get no reply
	ttls             map[key][]uint32
	parts            map[key]int // how many records of a set it sends, in rotation; 0: all
	faults           []fault     // the last matching fault counts
}

type key struct {
	name dnsname.Name
	typ  uint16
}

// event is a scheduled command.
type event struct {
	at time.Duration
	do command
}

func newServer(n *Net, addr netip.AddrPort) *Server {
	return &Server{net: n, addr: addr, zones: map[dnsname.Name]*dns.SOA{}, sets: map[key][]dns.RR{},
		names: map[dnsname.Name]int{}, signers: map[dnsname.Name]*signer{}, routes: map[dnsname.Name]netip.AddrPort{},
		cache: map[key]entry{}, asked: map[key]int{},
		behavior: behavior{ttls: map[key][]uint32{}, parts: map[key]int{}}}
}

// speaks reports whether the server accepts a transport.
func (s *Server) speaks(tr resolve.Transport) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	return s.behavior.only == "" || (s.behavior.only == "udp") == (tr == resolve.UDP)
}

// query is a query that has arrived, with its reply.
type query struct {
	key
	msg    *dns.Msg
	via    path
	client netip.Prefix                  // the sender of the query, or its client subnet
	scope  int                           // number of bits of client that the answer depends on
	nth    int                           // how many times the question was asked
	wild   map[dnsname.Name]dnsname.Name // the wildcard for each name of the reply that was expanded from one
	reply  *dns.Msg

	instance int // number of the cache that answers, from 1; 0 if there is only one
}

func (q *query) do() bool { opt := q.msg.IsEdns0(); return opt != nil && opt.Do() }

// serve replies to a query after the latency of the server.
func (s *Server) serve(ctx context.Context, via path, name dnsname.Name, msg *dns.Msg) (packet, error) {
	q := &query{key: key{name, msg.Question[0].Qtype}, msg: msg, via: via,
		client: netip.PrefixFrom(via.client, via.client.BitLen()),
		reply:  new(dns.Msg).SetReply(msg)}
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
	fault.apply(q.reply, via.transport)
	return packet{msg: q.reply, from: from, damaged: fault == malformed}, nil
}

// receive processes a query when it arrives and answers it from the data of that moment. For queries to other servers
// it returns a function that sends them.
func (s *Server) receive(q *query) (faultKind, time.Duration, func(context.Context, *query) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUpLocked()
	s.asked[q.key]++
	q.nth = s.asked[q.key]
	chance := s.randLocked(q.key, q.via.transport)
	wait := s.behavior.fastest + time.Duration(chance.Float64()*float64(s.behavior.slowest-s.behavior.fastest))
	if q.via.transport != resolve.UDP {
		wait *= 2 // for the handshake
	}
	fault := s.behavior.fault(q.key)
	if fault == none && q.via.transport == resolve.UDP && chance.Float64() < s.behavior.loss || s.behavior.ignores(q) {
		fault = timeout
	}
	s.behavior.readSubnet(q)
	switch _, forwarded := s.routeLocked(q.name); {
	case forwarded:
		return fault, wait, s.forward
	case s.resolver != nil && s.zoneLocked(q.name) == nil:
		return fault, wait, s.resolve
	}
	s.answerLocked(q)
	return fault, wait, nil
}

// finish adapts the reply to its query. It returns the source address of the reply.
func (s *Server) finish(q *query) netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.behavior.reject(q) {
		s.behavior.addRequestedOptions(q)
		s.behavior.fit(q)
	}
	if s.behavior.folds {
		q.reply.Question = []dns.Question{{Name: q.name.String(), Qtype: q.typ, Qclass: q.msg.Question[0].Qclass}}
	}
	if s.behavior.source.IsValid() && q.via.transport == resolve.UDP {
		return s.behavior.source
	}
	return s.addr
}

// catchUpLocked runs the scheduled commands that are due.
func (s *Server) catchUpLocked() {
	age := s.net.Age()
	for len(s.scheduled) > 0 && s.scheduled[0].at <= age {
		do := s.scheduled[0].do
		s.scheduled = s.scheduled[1:]
		do(s)
	}
}

// randLocked returns the random source for a question. It depends only on how often the question was asked.
func (s *Server) randLocked(k key, tr resolve.Transport) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, s.addr, tr, k.name.Wire(), k.typ, s.asked[k])
	return rand.New(rand.NewPCG(s.net.seed, h.Sum64()))
}
