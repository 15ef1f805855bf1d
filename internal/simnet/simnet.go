// Package simnet is an in-memory internet of scripted DNS servers for tests and for the lab, on the clock of package
// time.
//
// In a testing/synctest bubble that clock is fake, so an hour of refreshes and outages takes milliseconds and is
// reproducible.
//
// A Net is a resolve.Exchanger, which sends queries to its servers. Tests that include a resolve.Client use Dial,
// which opens in-memory connections to them. History returns all queries.
//
//	net := simnet.New(1)
//	net.MustServer("192.0.2.53", `
//		zone example.net.
//		cdn.example.net. 60 A 203.0.113.1, 203.0.113.2
//		at 1m set cdn.example.net. 60 A 203.0.113.3
//		at 2m fault timeout cdn.example.net. A
//		at 3m heal
//	`)
//
// Start with Server.Do in script.go: it describes the commands. Latency and loss are random. They depend on the
// random seed of the Net, the server, the question and how often it was asked. So the order of goroutines does not
// matter.
package simnet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
)

// Net is a network of servers.
type Net struct {
	seed  uint64
	start time.Time

	mu      sync.Mutex // guards the following
	servers map[netip.AddrPort]*Server
	history []Query
}

// Query is one query to a server, including queries that were lost.
type Query struct {
	At        time.Duration // age of the Net
	Server    netip.AddrPort
	Transport resolve.Transport
	Name      dnsname.Name
	Type      rr.Type
}

func (q Query) String() string {
	return fmt.Sprintf("%v %s://%v %v %v", q.At, q.Transport, q.Server, q.Name, q.Type)
}

// New returns a network without servers. Its clock starts now. Nets with the same seed have the same random events.
func New(seed uint64) *Net {
	return &Net{seed: seed, start: time.Now(), servers: map[netip.AddrPort]*Server{}}
}

// Server adds a server, or finds an existing one, and runs the commands of a script, one per line. The default port
// is 53.
func (n *Net) Server(addr, script string) (*Server, error) {
	at, err := resolve.ParseServer(addr)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	s := n.servers[at.Addr]
	if s == nil {
		s = newServer(n, at.Addr)
		n.servers[at.Addr] = s
	}
	n.mu.Unlock()
	return s, s.script(script)
}

// MustServer is like Server but panics on errors, for constant scripts in tests.
func (n *Net) MustServer(addr, script string) *Server {
	s, err := n.Server(addr, script)
	if err != nil {
		panic(err)
	}
	return s
}

// History returns the queries in the order of arrival: at least the last 100,000.
func (n *Net) History() []Query {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.history)
}

// Forget clears the history.
func (n *Net) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history = nil
}

// Age returns the time since the network was created. The times of scripts are relative to it.
func (n *Net) Age() time.Duration { return time.Since(n.start) }

func (n *Net) note(q Query) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.history) == 2*maxHistory { // for labs that run for days
		n.history = append(n.history[:0], n.history[maxHistory:]...)
	}
	n.history = append(n.history, q)
}

// maxHistory is the minimum number of queries that are kept.
const maxHistory = 100_000

func (n *Net) find(addr netip.AddrPort) *Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[addr]
}

var (
	errUnreachable = errors.New("connection refused")
	errQuestion    = errors.New("a query has one question")
)

// defaultTimeout applies to an exchange whose context has no deadline, as in resolve.Client.
const defaultTimeout = 5 * time.Second

// Exchange implements resolve.Exchanger like resolve.Client: it ignores replies to other questions and requests
// truncated replies again over TCP. Timeouts are context.DeadlineExceeded. TLS is treated as TCP.
func (n *Net) Exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	if _, ends := ctx.Deadline(); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	exchange := n.exchange
	if server.Once {
		exchange = n.once
	}
	reply, err := exchange(ctx, path{server.Transport, server.Addr, loopback}, query)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", server, err)
	}
	return reply, nil
}

// exchange retries over TCP if the reply over UDP is truncated.
func (n *Net) exchange(ctx context.Context, via path, query *dns.Msg) (*dns.Msg, error) {
	reply, err := n.once(ctx, via, query)
	if err == nil && reply.Truncated && via.transport == resolve.UDP {
		via.transport = resolve.TCP
		return n.once(ctx, via, query)
	}
	return reply, err
}

func (n *Net) once(ctx context.Context, via path, query *dns.Msg) (*dns.Msg, error) {
	if !n.accepts(via.to, via.transport) {
		return nil, errUnreachable
	}
	p, err := n.send(ctx, via, query)
	if err != nil {
		return nil, err
	}
	if p.damaged {
		wire, err := p.pack()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the reply cannot be read: %w", new(dns.Msg).Unpack(wire))
	}
	if no := p.mismatch(via, query); no != nil {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", ctx.Err(), no)
	}
	resolve.NoteSize(ctx, p.msg.Len())
	return p.msg, nil
}

// packet is a reply that is being delivered.
type packet struct {
	msg     *dns.Msg
	from    netip.AddrPort
	damaged bool // the receiver cannot parse it
}

var errSource = errors.New("the reply came from another address")

// mismatch returns why the client ignores a reply, or nil.
func (p packet) mismatch(via path, query *dns.Msg) error {
	asked, said := query.Question[0], p.msg.Question[0]
	switch {
	case p.from != via.to:
		return errSource
	case p.msg.Id != query.Id:
		return resolve.ErrID
	case !strings.EqualFold(asked.Name, said.Name) || asked.Qtype != said.Qtype || asked.Qclass != said.Qclass:
		return resolve.ErrQuestion
	}
	return nil
}

// pack returns the packet in wire format.
func (p packet) pack() ([]byte, error) {
	wire, err := p.msg.Pack()
	if err == nil && p.damaged {
		wire = wire[:len(wire)-3] // in the middle of the last record
	}
	return wire, err
}

// send passes a query to a server and returns its reply.
func (n *Net) send(ctx context.Context, via path, query *dns.Msg) (packet, error) {
	if len(query.Question) != 1 {
		return packet{}, errQuestion
	}
	name, err := dnsname.Parse(query.Question[0].Name)
	if err != nil {
		return packet{}, err
	}
	s := n.find(via.to)
	if s == nil {
		return packet{}, errUnreachable
	}
	n.note(Query{n.Age(), via.to, via.transport, name, rr.Type(query.Question[0].Qtype)})
	return s.serve(ctx, via, name, query)
}
