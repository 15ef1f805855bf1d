package simnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// path describes how a query is sent: the transport, the server and the client.
type path struct {
	transport resolve.Transport
	to        netip.AddrPort
	client    netip.Addr
}

// replyTimeout is how long a server works on a query before it gives up.
const replyTimeout = 10 * time.Second

// loopback is the client address of queries that do not come over a socket.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Dial opens an in-memory connection to a server, over "udp" or "tcp". It can be the Dial function of a
// resolve.Client. TLS is not supported. Over UDP each Write sends a datagram.
func (n *Net) Dial(_ context.Context, network, address string) (net.Conn, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	tr := resolve.UDP
	switch {
	case network == "tcp":
		tr = resolve.TCP
	case network != "udp":
		return nil, fmt.Errorf("network %q is not supported: use udp or tcp", network)
	}
	if !n.accepts(addr, tr) {
		return nil, errUnreachable
	}
	ours, theirs := net.Pipe()
	go (&conn{net: n, path: path{tr, addr, loopback}, pipe: ours}).serve(context.Background())
	return theirs, nil
}

// accepts reports whether there is a server that accepts a transport. UDP has no handshake, so a client does not
// notice that a server accepts only TCP.
func (n *Net) accepts(addr netip.AddrPort, tr resolve.Transport) bool {
	s := n.find(addr)
	return s != nil && (tr == resolve.UDP || s.speaks(tr))
}

// conn is the server side of a connection.
type conn struct {
	net     *Net
	path    path
	pipe    net.Conn
	writing sync.Mutex // held while a reply is written
}

// serve replies to the queries on a connection until it is closed. Each reply is sent as soon as it is ready.
func (c *conn) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var replying sync.WaitGroup
	defer replying.Wait()
	defer cancel()
	defer c.pipe.Close()
	buf := make([]byte, dns.MaxMsgSize)
	for {
		wire, err := c.read(buf)
		if err != nil {
			return
		}
		query := new(dns.Msg)
		if query.Unpack(wire) != nil {
			continue
		}
		replying.Go(func() { c.reply(ctx, query) })
	}
}

func (c *conn) read(buf []byte) ([]byte, error) {
	if c.path.transport == resolve.UDP {
		size, err := c.pipe.Read(buf)
		return buf[:size], err
	}
	return readFramed(c.pipe, buf)
}

// reply passes a query to the server. It closes the connection if the server is unreachable. It drops replies with
// another source address.
func (c *conn) reply(ctx context.Context, query *dns.Msg) {
	p, err := c.net.send(ctx, c.path, query)
	if err != nil {
		c.pipe.Close()
		return
	}
	if p.from != c.path.to {
		return
	}
	wire, err := p.pack()
	if err != nil {
		c.pipe.Close()
		return
	}
	if c.path.transport != resolve.UDP {
		wire = append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, _ = c.pipe.Write(wire) // fails if the client has closed the connection
}
