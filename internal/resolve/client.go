// Package resolve asks DNS servers: one query to one server, and its reply.
package resolve

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// Exchanger asks a server. Client is the one that does so on a network; tests have others.
type Exchanger interface {
	// Exchange sends a query and returns its reply, which it has checked to be one: same id, same question. It does not
	// change the query. A reply of any RCODE is no error.
	Exchange(ctx context.Context, server Server, query *dns.Msg) (*dns.Msg, error)
}

// Client is an Exchanger. The zero Client works. It must not be copied once it was used.
type Client struct {
	Roots *x509.CertPool // whom to trust for the certificates of TLS servers; default: whom the system trusts
	AsIs  bool           // send no OPT record with queries that have none; some servers take none
	// Dial opens connections; default: a net.Dialer's. Packets of a connection to "udp" must come from its peer only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex // guards the following
	streams  map[Server][]*stream
	sessions tls.ClientSessionCache
}

const (
	// udpBuffer has room for servers that send more than they were asked for.
	udpBuffer = 4096
	// defaultTimeout ends an exchange whose context has no end.
	defaultTimeout = 5 * time.Second
)

// The errors that callers tell apart. Timeouts are context.DeadlineExceeded; where nothing but replies came that were not to the
// query, as from a server that is broken or from a forger, they are one of these two as well.
var (
	ErrID       = errors.New("the reply has another id")
	ErrQuestion = errors.New("the reply has another question")
)

var (
	errMalformed   = errors.New("the reply cannot be read")
	errOneQuestion = errors.New("a query has one question")
)

// IsUnreadable reports whether an Exchanger failed because the reply that came is no DNS message.
func IsUnreadable(err error) bool {
	var syntax *dns.Error
	return errors.Is(err, errMalformed) || errors.As(err, &syntax)
}

// Exchange implements Exchanger. Without an OPT record in the query it adds one that asks for replies of 1232 octets, unless c
// is AsIs. The question of the reply is in the case in which the server wrote it.
func (c *Client) Exchange(ctx context.Context, server Server, query *dns.Msg) (*dns.Msg, error) {
	if _, ends := ctx.Deadline(); !ends {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	wire, err := c.pack(query)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", server, err)
	}
	reply, err := c.exchange(ctx, server, wire)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", server, inTime(ctx, err))
	}
	reply.Id = query.Id
	if len(reply.Question) == 0 {
		reply.Question = query.Question[:1:1]
	}
	return reply, nil
}

// inTime makes all the ways in which a connection tells that time is up into one. What came instead of the reply is kept.
func inTime(ctx context.Context, err error) error {
	ended := ctx.Err()
	var timeout net.Error
	if ended == nil && errors.As(err, &timeout) && timeout.Timeout() {
		ended = context.DeadlineExceeded
	}
	for _, wrong := range []error{ErrID, ErrQuestion} {
		if ended != nil && errors.Is(err, wrong) {
			return fmt.Errorf("%w: %w", ended, wrong)
		}
	}
	if ended != nil {
		return ended
	}
	return err
}

// pack returns the query in wire form. The id is chosen where it is sent.
func (c *Client) pack(query *dns.Msg) ([]byte, error) {
	if len(query.Question) != 1 {
		return nil, errOneQuestion
	}
	q := query.Copy() // Pack writes to the OPT record
	if q.IsEdns0() == nil && !c.AsIs {
		q.SetEdns0(wire.UDPSize, false)
	}
	return q.Pack()
}

func (c *Client) exchange(ctx context.Context, server Server, wire []byte) (*dns.Msg, error) {
	if server.Transport != UDP {
		return c.exchangeStream(ctx, server, wire)
	}
	reply, err := c.exchangeUDP(ctx, server, wire)
	if err != nil || !reply.Truncated || server.Once {
		return reply, err
	}
	return c.exchangeStream(ctx, Server{Transport: TCP, Addr: server.Addr}, wire)
}

var buffers = sync.Pool{New: func() any { return new([udpBuffer]byte) }}

// exchangeUDP has a socket of its own for the query. So its port is one that the system chose at random, which a forger
// must guess along with the id (RFC 5452 §4.5), and as it is connected, the system drops what others send.
func (c *Client) exchangeUDP(ctx context.Context, server Server, wire []byte) (*dns.Msg, error) {
	conn, err := c.dial(ctx, "udp", server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	binary.BigEndian.PutUint16(wire, randomID())
	if _, err := conn.Write(wire); err != nil {
		return nil, err
	}
	buf := buffers.Get().(*[udpBuffer]byte)
	defer buffers.Put(buf)
	var wrong error
	for {
		n, err := conn.Read(buf[:])
		if err != nil {
			return nil, errors.Join(err, wrong)
		}
		// What does not match was sent by a forger, or late. The reply may still come.
		if no := Match(wire, buf[:n]); no != nil {
			wrong = no
			continue
		}
		if buf[2]&flagTC != 0 {
			// What is there counts for nothing (RFC 2181 §9), and may end in the middle of a record.
			return &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true}}, nil
		}
		return unpack(buf[:n])
	}
}

func (c *Client) dial(ctx context.Context, network string, server Server) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial(ctx, network, server.Addr.String())
	}
	var d net.Dialer
	return d.DialContext(ctx, network, server.Addr.String())
}

func randomID() uint16 {
	var b [2]byte
	rand.Read(b[:])
	return binary.BigEndian.Uint16(b[:])
}
