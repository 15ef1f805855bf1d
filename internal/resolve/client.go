// Package resolve sends one query to one DNS server and returns its reply.
//
// Start with Client in client.go: it sends a query over UDP, TCP or TLS and checks that the reply belongs to it.
// Connections are in stream.go. Budget in budget.go limits how many queries a run sends, and Pace in pace.go how
// fast.
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

// Exchanger sends queries to servers. Client does so over a network; tests have other implementations.
type Exchanger interface {
	// Exchange sends a query and returns its reply. It checks that the reply has the ID and the question of the query.
	// It does not change the query. A reply with any RCODE is not an error.
	Exchange(ctx context.Context, server Server, query *dns.Msg) (*dns.Msg, error)
}

// Client is an Exchanger. The zero Client is ready to use. A Client must not be copied after its first use.
type Client struct {
	// Roots are the authorities that may sign the certificates of TLS servers. Default: those of the system.
	Roots *x509.CertPool
	// AsIs sends queries without an OPT record as they are. Some servers reject queries that have one.
	AsIs bool
	// Dial opens connections. Default: that of a net.Dialer. A "udp" connection must receive packets from its peer only.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu       sync.Mutex // guards the following
	streams  map[Server][]*stream
	sessions tls.ClientSessionCache
}

const (
	// udpBuffer has room for the replies of servers that exceed the size in the OPT record.
	udpBuffer = 4096
	// defaultTimeout applies to an exchange whose context has no deadline.
	defaultTimeout = 5 * time.Second
)

// Errors that callers distinguish. A timeout is context.DeadlineExceeded. It is also one of these two errors if the
// only replies did not match the query: the server is broken, or somebody forges replies.
var (
	ErrID       = errors.New("the reply has another id")
	ErrQuestion = errors.New("the reply has another question")
)

var (
	errMalformed   = errors.New("the reply cannot be read")
	errOneQuestion = errors.New("a query has one question")
)

// IsUnreadable reports whether an Exchanger failed because the reply is not a valid DNS message.
func IsUnreadable(err error) bool {
	var syntax *dns.Error
	return errors.Is(err, errMalformed) || errors.As(err, &syntax)
}

// Exchange implements Exchanger. If the query has no OPT record, Exchange adds one that asks for replies of at most
// 1232 bytes, unless c.AsIs is set. The question of the reply keeps the upper and lower case that the server sent.
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
		return nil, fmt.Errorf("ask %s: %w", server, normalizeTimeout(ctx, err))
	}
	reply.Id = query.Id
	if len(reply.Question) == 0 {
		reply.Question = query.Question[:1:1]
	}
	return reply, nil
}

// normalizeTimeout maps all timeout errors of connections to the one of the context. It keeps ErrID and ErrQuestion,
// which say what arrived instead of the reply.
func normalizeTimeout(ctx context.Context, err error) error {
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

// pack returns the query in wire format. The sender fills in the ID.
func (c *Client) pack(query *dns.Msg) ([]byte, error) {
	if len(query.Question) != 1 {
		return nil, errOneQuestion
	}
	q := query.Copy() // Pack modifies the OPT record
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

// exchangeUDP opens a socket for each query. So the system chooses a random port, which a forger must guess in
// addition to the ID (RFC 5452 §4.5). The socket is connected, so the system drops packets from other peers.
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
		// A forger sent this packet, or it is late. The real reply may still arrive.
		if no := Match(wire, buf[:n]); no != nil {
			wrong = no
			continue
		}
		if buf[2]&flagTC != 0 {
			// Ignore the records of a truncated reply (RFC 2181 §9). The last one may be incomplete.
			return &dns.Msg{MsgHdr: dns.MsgHdr{Truncated: true}}, nil
		}
		NoteSize(ctx, n)
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
