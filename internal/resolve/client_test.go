package resolve_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve"
)

// answers returns the answer records of a reply as text.
func answers(m *dns.Msg) []string {
	var out []string
	for _, r := range m.Answer {
		out = append(out, strings.Join(strings.Fields(r.String()), " "))
	}
	return out
}

const good = "www.example.org. 300 IN A 192.0.2.1"

// exchange queries the address of www.example.org.
func exchange(t *testing.T, c *resolve.Client, s resolve.Server) ([]string, error) {
	t.Helper()
	q := question("www.example.org.", dns.TypeA)
	q.Id = 7 // must not be visible on the network
	m, err := c.Exchange(t.Context(), s, q)
	if err != nil {
		return nil, err
	}
	if m.Id != q.Id || m.Question[0] != q.Question[0] {
		t.Errorf("reply has id %d and question %v, want %d and %v", m.Id, m.Question, q.Id, q.Question)
	}
	return answers(m), nil
}

func mustExchange(t *testing.T, c *resolve.Client, s resolve.Server) {
	t.Helper()
	got, err := exchange(t, c, s)
	if diff := cmp.Diff([]string{good}, got); err != nil || diff != "" {
		t.Fatalf("Exchange: %v\n(-want +got)\n%s", err, diff)
	}
}

// TestForgedReplies sends every kind of message that is not the reply, and then the reply.
func TestForgedReplies(t *testing.T) {
	const bad = "www.example.org. 300 IN A 192.0.2.66"
	s := serveUDP(t, func(p packet) {
		forge := func(change func([]byte) []byte) { p.send(change(reply(t, p.query, bad))) }
		forge(func(b []byte) []byte { b[0] ^= 1; return b })       // id
		forge(func(b []byte) []byte { b[2] &^= 0x80; return b })   // a query
		forge(func(b []byte) []byte { b[2] |= 0x28; return b })    // another opcode
		forge(func(b []byte) []byte { b[5] = 0; return b })        // no question
		forge(func(b []byte) []byte { b[13] = 'x'; return b })     // another name
		forge(func(b []byte) []byte { b[12+17+1] = 15; return b }) // another type
		forge(func(b []byte) []byte { b[12+17+3] = 3; return b })  // another class
		forge(func(b []byte) []byte { return b[:20] })             // truncated
		forge(func(b []byte) []byte { return nil })
		// A packet from another port of the same host.
		other, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Error(err)
			return
		}
		defer other.Close()
		other.WriteToUDPAddrPort(reply(t, p.query, bad), p.from)
		p.send(reply(t, p.query, good))
	})
	mustExchange(t, &resolve.Client{}, s)
}

func TestPortsAndIDs(t *testing.T) {
	const n = 50
	packets := make(chan packet, n)
	s := serveUDP(t, func(p packet) {
		packets <- p
		p.send(reply(t, p.query, good))
	})
	ports, ids := map[uint16]bool{}, map[string]bool{}
	c := &resolve.Client{}
	for range n {
		mustExchange(t, c, s)
		p := <-packets
		ports[p.from.Port()] = true
		ids[string(p.query[:2])] = true
	}
	// The chance that more than one pair of 50 random numbers is equal is one in a thousand.
	if len(ports) < n-5 || len(ids) < n-5 {
		t.Errorf("%d queries had %d ports and %d ids", n, len(ports), len(ids))
	}
}

func TestEDNS(t *testing.T) {
	own := question("www.example.org.", dns.TypeA)
	own.SetEdns0(4000, true)
	tests := []struct {
		name  string
		query *dns.Msg
		size  uint16
		do    bool
	}{
		{"added", question("www.example.org.", dns.TypeA), 1232, false},
		{"kept", own, 4000, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan *dns.OPT, 1)
			s := serveUDP(t, func(p packet) {
				m := new(dns.Msg)
				m.Unpack(p.query)
				got <- m.IsEdns0()
				p.send(reply(t, p.query, good))
			})
			before := tt.query.String()
			if _, err := new(resolve.Client).Exchange(t.Context(), s, tt.query); err != nil {
				t.Fatal(err)
			}
			if opt := <-got; opt == nil || opt.UDPSize() != tt.size || opt.Do() != tt.do {
				t.Errorf("query has %v, want size %d, DO %v", opt, tt.size, tt.do)
			}
			if tt.query.String() != before {
				t.Errorf("query became %s, was %s", tt.query, before)
			}
		})
	}
}

func TestTruncated(t *testing.T) {
	s := serveBoth(t, func(p packet) {
		wire := reply(t, p.query)
		wire[2] |= 0x02
		p.send(wire)
	}, func(conn net.Conn) {
		writeMessage(conn, reply(t, readMessage(conn), good))
	})
	mustExchange(t, &resolve.Client{}, s)
}

func TestFailures(t *testing.T) {
	silent := serveUDP(t, func(packet) {})
	garbage := serveUDP(t, func(p packet) {
		wire := reply(t, p.query, good)
		p.send(wire[:len(wire)-2])
	})
	closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	dead := resolve.Server{Addr: closed.LocalAddr().(*net.UDPAddr).AddrPort()}
	closed.Close()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	tests := []struct {
		name   string
		ctx    context.Context
		server resolve.Server
		query  *dns.Msg
		is     error
		says   string
	}{
		{"timeout", soon, silent, question("example.org.", dns.TypeA), context.DeadlineExceeded, silent.String()},
		{"canceled", canceled, silent, question("example.org.", dns.TypeA), context.Canceled, silent.String()},
		{"dead port", t.Context(), dead, question("example.org.", dns.TypeA),
			syscall.ECONNREFUSED, dead.String()},
		{"dead TCP port", t.Context(), resolve.Server{Transport: resolve.TCP, Addr: dead.Addr},
			question("example.org.", dns.TypeA), syscall.ECONNREFUSED, "tcp://"},
		{"cut short", t.Context(), garbage, question("www.example.org.", dns.TypeA), nil, "cannot be read"},
		{"no question", t.Context(), silent, new(dns.Msg), nil, "one question"},
		{"bad name", t.Context(), silent, question("a..b.", dns.TypeA), nil, "ask "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := new(resolve.Client).Exchange(tt.ctx, tt.server, tt.query)
			if err == nil {
				t.Fatalf("got a reply: %s", m)
			}
			if tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %q, want %v and %q", err, tt.is, tt.says)
			}
		})
	}
}

// TestCutReplies checks that a reply with the TC bit is fetched again over TCP, wherever it ends. An incomplete reply
// without the bit is an error.
func TestCutReplies(t *testing.T) {
	mx := "www.example.org. 300 IN MX 10 mail.example.net."
	tests := []struct {
		name   string
		record string
		data   int // number of bytes of its data that are sent
		tc     bool
	}{
		{"in an address, with TC", good, 2, true},
		{"in an address", good, 2, false},
		{"before the address", good, 0, false},
		{"before the name of an MX", mx, 2, false},
		{"before the name of an HTTPS", "www.example.org. 300 IN HTTPS 1 www.example.net.", 2, false},
		{"before the second name of an SOA", "www.example.org. 300 IN SOA a. b. 1 2 3 4 5", 3, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serveBoth(t, func(p packet) {
				wire := reply(t, p.query, tt.record)
				const fixed = 33 + 17 + 10 // question, owner, and the fields before the data
				wire = wire[:fixed+tt.data]
				if tt.tc {
					wire[2] |= 2
				} else {
					wire[fixed-1] = byte(tt.data)
				}
				p.send(wire)
			}, func(conn net.Conn) { writeMessage(conn, reply(t, readMessage(conn), good)) })
			m, err := exchange(t, &resolve.Client{}, s)
			if tt.tc && (err != nil || len(m) != 1) || !tt.tc && err == nil {
				t.Errorf("reply is %v (%v)", m, err)
			}
		})
	}
}

// TestWrongReplies checks that a timeout error says what arrived instead of the reply, over UDP and TCP.
func TestWrongReplies(t *testing.T) {
	tests := []struct {
		name  string
		spoil func([]byte)
		want  error
	}{
		{"id", func(b []byte) { b[1]++ }, resolve.ErrID},
		{"question", func(b []byte) { b[13] = 'x' }, resolve.ErrQuestion},
	}
	for _, tt := range tests {
		wrong := func(query []byte) []byte {
			b := reply(t, query, good)
			tt.spoil(b)
			return b
		}
		servers := []resolve.Server{
			serveUDP(t, func(p packet) { p.send(wrong(p.query)) }),
			serveTCP(t, func(conn net.Conn) {
				writeMessage(conn, wrong(readMessage(conn)))
				readMessage(conn)
			}),
		}
		for _, s := range servers {
			t.Run(tt.name+"/"+s.Transport.String(), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				_, err := new(resolve.Client).Exchange(ctx, s, question("www.example.org.", dns.TypeA))
				if !errors.Is(err, tt.want) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("err = %v, want %v and a timeout", err, tt.want)
				}
			})
		}
	}
}

// TestAsIs checks that no OPT record is added if AsIs is set.
func TestAsIs(t *testing.T) {
	got := make(chan bool, 1)
	s := serveUDP(t, func(p packet) {
		m := new(dns.Msg)
		m.Unpack(p.query)
		got <- m.IsEdns0() != nil
		p.send(reply(t, p.query, good))
	})
	mustExchange(t, &resolve.Client{AsIs: true}, s)
	if <-got {
		t.Error("the query has an OPT record")
	}
}

// TestCaseIsKept checks that the question of a reply keeps the case that the server sent.
func TestCaseIsKept(t *testing.T) {
	s := serveUDP(t, func(p packet) {
		b := reply(t, p.query, good)
		b[13] = 'w'
		p.send(b)
	})
	m, err := new(resolve.Client).Exchange(t.Context(), s, question("WWW.example.org.", dns.TypeA))
	if err != nil || m.Question[0].Name != "wWW.example.org." {
		t.Errorf("got %v, %v", m, err)
	}
}
