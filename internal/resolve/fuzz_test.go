package resolve_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// conn returns one packet in reply to a write.
type conn struct {
	net.Conn
	make func(query []byte) []byte
	next []byte
}

func (c *conn) Write(b []byte) (int, error) { c.next = c.make(b); return len(b), nil }
func (c *conn) Close() error                { return nil }
func (c *conn) SetDeadline(time.Time) error { return nil }

func (c *conn) Read(b []byte) (int, error) {
	if c.next == nil {
		return 0, net.ErrClosed
	}
	n := copy(b, c.next)
	c.next = nil
	return n, nil
}

// FuzzReply lets a server that knows the ID reply with anything. Accepted replies must have our question.
func FuzzReply(f *testing.F) {
	q, _ := question("www.example.org.", dns.TypeA).Pack()
	f.Add(reply(f, q, good)[2:])
	f.Add(q[2:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &resolve.Client{Dial: func(context.Context, string, string) (net.Conn, error) {
			return &conn{make: func(query []byte) []byte { return append(query[:2:2], b...) }}, nil
		}}
		m, err := c.Exchange(t.Context(), resolve.Server{}, question("www.example.org.", dns.TypeA))
		if err == nil && (!m.Response || len(m.Question) != 1 || m.Question[0].Name != "www.example.org.") {
			t.Errorf("%x became %s", b, m)
		}
	})
}
