// Package simnet is a small internet in memory: DNS servers that answer by script, and fail by script, on the clock of
// package time. In a testing/synctest bubble that clock is fake, so an hour of refreshes and outages takes milliseconds
// and goes the same way every time.
//
// A Net is a resolve.Exchanger, which is the way to ask its servers; Dial gives connections to them in memory, for a
// resolve.Client that shall be part of the test. Every query is kept in History.
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
// The commands are described at Server.Do. Latency and loss are drawn from the seed, the server, the question and how often
// it was asked, not from one stream of numbers: goroutines that run in another order draw the same.
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

// Query is one query that a server received; one that was lost on the way is among them.
type Query struct {
	At        time.Duration // since the Net was made
	Server    netip.AddrPort
	Transport resolve.Transport
	Name      dnsname.Name
	Type      rr.Type
}

func (q Query) String() string {
	return fmt.Sprintf("%v %s://%v %v %v", q.At, q.Transport, q.Server, q.Name, q.Type)
}

// New makes a network without servers. Its clock starts now. Nets of the same seed draw the same chances.
func New(seed uint64) *Net {
	return &Net{seed: seed, start: time.Now(), servers: map[netip.AddrPort]*Server{}}
}

// Server adds a server, or finds the one that is there, and does the commands of a script, one a line. An address without
// a port has port 53.
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

// MustServer is Server for what is constant in a test.
func (n *Net) MustServer(addr, script string) *Server {
	s, err := n.Server(addr, script)
	if err != nil {
		panic(err)
	}
	return s
}

// History are the queries so far, in the order in which they arrived: the newest 100,000 at least.
func (n *Net) History() []Query {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.history)
}

// Forget empties the history.
func (n *Net) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.history = nil
}

// Age is how long the network has been there: what scripts count from.
func (n *Net) Age() time.Duration { return time.Since(n.start) }

func (n *Net) note(q Query) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.history) == 2*maxHistory { // of a lab that runs for days
		n.history = append(n.history[:0], n.history[maxHistory:]...)
	}
	n.history = append(n.history, q)
}

// maxHistory is how many queries are kept at least.
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

// defaultTimeout ends an exchange whose context has no end, as resolve.Client's does.
const defaultTimeout = 5 * time.Second

// Exchange implements resolve.Exchanger the way resolve.Client does: replies to other questions are not seen, those that are
// cut off are asked for again over TCP, timeouts are context.DeadlineExceeded. TLS is TCP here.
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

// exchange asks over TCP for what does not fit into a reply over UDP.
func (n *Net) exchange(ctx context.Context, way path, query *dns.Msg) (*dns.Msg, error) {
	reply, err := n.once(ctx, way, query)
	if err == nil && reply.Truncated && way.transport == resolve.UDP {
		way.transport = resolve.TCP
		return n.once(ctx, way, query)
	}
	return reply, err
}

func (n *Net) once(ctx context.Context, way path, query *dns.Msg) (*dns.Msg, error) {
	if !n.accepts(way.to, way.transport) {
		return nil, errUnreachable
	}
	p, err := n.send(ctx, way, query)
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
	if no := p.misses(way, query); no != nil {
		<-ctx.Done()
		return nil, fmt.Errorf("%w: %w", ctx.Err(), no)
	}
	return p.msg, nil
}

// packet is a reply on its way.
type packet struct {
	msg     *dns.Msg
	from    netip.AddrPort
	damaged bool // cannot be read where it arrives
}

var errSource = errors.New("the reply came from another address")

// misses tells why a reply is not seen by the one who asked.
func (p packet) misses(way path, query *dns.Msg) error {
	asked, said := query.Question[0], p.msg.Question[0]
	switch {
	case p.from != way.to:
		return errSource
	case p.msg.Id != query.Id:
		return resolve.ErrID
	case !strings.EqualFold(asked.Name, said.Name) || asked.Qtype != said.Qtype || asked.Qclass != said.Qclass:
		return resolve.ErrQuestion
	}
	return nil
}

// pack is the packet in wire form.
func (p packet) pack() ([]byte, error) {
	wire, err := p.msg.Pack()
	if err == nil && p.damaged {
		wire = wire[:len(wire)-3] // in the middle of the last record
	}
	return wire, err
}

// send takes a query to a server and its reply back, both over the same transport.
func (n *Net) send(ctx context.Context, way path, query *dns.Msg) (packet, error) {
	if len(query.Question) != 1 {
		return packet{}, errQuestion
	}
	name, err := dnsname.Parse(query.Question[0].Name)
	if err != nil {
		return packet{}, err
	}
	s := n.find(way.to)
	if s == nil {
		return packet{}, errUnreachable
	}
	n.note(Query{n.Age(), way.to, way.transport, name, rr.Type(query.Question[0].Qtype)})
	return s.serve(ctx, way, name, query)
}
