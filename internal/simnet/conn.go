package simnet

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// Dial opens a connection in memory to a server, over "udp" or "tcp"; it fits the Dial of a resolve.Client. There is no
// TLS. Over UDP each Write is a datagram.
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
		return nil, fmt.Errorf("no network %q here", network)
	}
	if n.find(addr) == nil {
		return nil, errUnreachable
	}
	ours, theirs := net.Pipe()
	go (&conn{net: n, transport: tr, addr: addr, pipe: ours}).serve()
	return theirs, nil
}

// conn is the server's end of a connection.
type conn struct {
	net       *Net
	transport resolve.Transport
	addr      netip.AddrPort
	pipe      net.Conn
	writing   sync.Mutex // held while a reply is written
}

// serve replies to the queries on a connection until it is closed, each as soon as its reply is there.
func (c *conn) serve() {
	ctx, cancel := context.WithCancel(context.Background())
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
	if c.transport == resolve.UDP {
		size, err := c.pipe.Read(buf)
		return buf[:size], err
	}
	var size [2]byte
	if _, err := io.ReadFull(c.pipe, size[:]); err != nil {
		return nil, err
	}
	wire := buf[:binary.BigEndian.Uint16(size[:])]
	_, err := io.ReadFull(c.pipe, wire)
	return wire, err
}

// reply takes a query to the server. Where nothing listens any more, the connection ends.
func (c *conn) reply(ctx context.Context, query *dns.Msg) {
	p, err := c.net.send(ctx, c.transport, c.addr, query)
	if err != nil {
		c.pipe.Close()
		return
	}
	wire, err := p.pack()
	if err != nil {
		c.pipe.Close()
		return
	}
	if c.transport != resolve.UDP {
		wire = append(binary.BigEndian.AppendUint16(nil, uint16(len(wire))), wire...)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, _ = c.pipe.Write(wire) // fails if nobody waits any more
}
