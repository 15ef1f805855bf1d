package resolve_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/nameplane/nameplane/internal/resolve"
)

// TestPipelining replies only when all queries have arrived, to the last one first.
func TestPipelining(t *testing.T) {
	const n = 20
	var conns atomic.Int32
	s := serveTCP(t, func(conn net.Conn) {
		conns.Add(1)
		var queries [][]byte
		for range n {
			queries = append(queries, readMessage(conn))
		}
		for i := range queries {
			q := queries[n-1-i]
			writeMessage(conn, reply(t, q, fmt.Sprintf("%s. 300 IN A 192.0.2.1", q[13:16])))
		}
		readMessage(conn)
	})
	c := &resolve.Client{}
	var g errgroup.Group
	for i := range n {
		g.Go(func() error {
			name := fmt.Sprintf("n%02d.", i)
			m, err := c.Exchange(t.Context(), s, question(name, dns.TypeA))
			if err != nil {
				return err
			}
			if got := answers(m); len(got) != 1 || got[0] != name+" 300 IN A 192.0.2.1" {
				return fmt.Errorf("asked for %s, got %v", name, got)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// TestManyQueries sends more queries at the same time than one connection accepts.
func TestManyQueries(t *testing.T) {
	const n = 150
	var conns atomic.Int32
	var all sync.WaitGroup
	all.Add(n)
	s := serveTCP(t, func(conn net.Conn) {
		conns.Add(1)
		for {
			q := readMessage(conn)
			if q == nil {
				return
			}
			all.Done()
			go func() {
				all.Wait()
				writeMessage(conn, reply(t, q, good))
			}()
		}
	})
	c := &resolve.Client{}
	var g errgroup.Group
	for range n {
		g.Go(func() error {
			_, err := c.Exchange(t.Context(), s, question("www.example.org.", dns.TypeA))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if got := conns.Load(); got != 3 {
		t.Errorf("%d connections, want 3 of 64 queries each", got)
	}
}

// TestClosedByServer closes each connection after its first reply: before the second query, and after it.
func TestClosedByServer(t *testing.T) {
	for _, swallow := range []bool{false, true} {
		t.Run(fmt.Sprintf("swallow=%v", swallow), func(t *testing.T) {
			var conns atomic.Int32
			s := serveTCP(t, func(conn net.Conn) {
				conns.Add(1)
				writeMessage(conn, reply(t, readMessage(conn), good))
				if swallow {
					readMessage(conn)
				}
			})
			c := &resolve.Client{}
			for range 5 {
				mustExchange(t, c, s)
			}
			if got := conns.Load(); got != 5 {
				t.Errorf("%d connections, want 5", got)
			}
		})
	}
}

// TestBrokenServer closes every connection without a reply. The client must return an error and not retry forever.
func TestBrokenServer(t *testing.T) {
	var conns atomic.Int32
	s := serveTCP(t, func(conn net.Conn) {
		conns.Add(1)
		readMessage(conn)
	})
	if _, err := exchange(t, &resolve.Client{}, s); err == nil {
		t.Error("no error")
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
}

// TestOtherReplies sends replies that no query waits for.
func TestOtherReplies(t *testing.T) {
	s := serveTCP(t, func(conn net.Conn) {
		q := readMessage(conn)
		const bad = "www.example.org. 300 IN A 192.0.2.66"
		wire := reply(t, q, bad)
		wire[0] ^= 1
		writeMessage(conn, wire)
		wire = reply(t, q, bad)
		wire[13] = 'x'
		writeMessage(conn, wire)
		writeMessage(conn, reply(t, q, good))
		readMessage(conn)
	})
	mustExchange(t, &resolve.Client{}, s)
}

// TestSilentConnection lets a peer vanish without closing the connection. The next query after a timeout uses another
// connection. The next query after a cancellation does not.
func TestSilentConnection(t *testing.T) {
	var conns atomic.Int32
	arrived := make(chan bool, 10)
	s := serveTCP(t, func(conn net.Conn) {
		mute := conns.Add(1) == 1
		for q := readMessage(conn); q != nil; q = readMessage(conn) {
			if mute {
				arrived <- true
				continue
			}
			writeMessage(conn, reply(t, q, good))
		}
	})
	c := &resolve.Client{}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		if _, err := c.Exchange(ctx, s, question("www.example.org.", dns.TypeA)); !errors.Is(err, context.Canceled) {
			t.Fatalf("Exchange: %v, want it canceled", err)
		}
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := c.Exchange(soon, s, question("www.example.org.", dns.TypeA))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Exchange: %v, want a timeout", err)
	}
	mustExchange(t, c, s)
	if got := conns.Load(); got != 2 {
		t.Errorf("%d connections, want 2", got)
	}
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t, "dns.example.org", net.IPv4(127, 0, 0, 1))
	_, others := certificate(t, "dns.example.org", net.IPv4(127, 0, 0, 1))
	var conns atomic.Int32
	plain := serveTCP(t, func(raw net.Conn) {
		conns.Add(1)
		conn := tls.Server(raw, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"dot"}})
		for q := readMessage(conn); q != nil; q = readMessage(conn) {
			writeMessage(conn, reply(t, q, good))
		}
	})
	tests := []struct {
		name   string
		client *resolve.Client
		host   string
		fails  string
	}{
		{"by name", &resolve.Client{Roots: pool}, "dns.example.org", ""},
		{"by address", &resolve.Client{Roots: pool}, "", ""},
		{"another name", &resolve.Client{Roots: pool}, "dns.example.net", "not dns.example.net"},
		{"another authority", &resolve.Client{Roots: others}, "dns.example.org", "unknown authority"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conns.Store(0)
			s := resolve.Server{Transport: resolve.TLS, Addr: plain.Addr, Name: tt.host}
			if tt.fails != "" {
				if _, err := exchange(t, tt.client, s); err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("Exchange: %v, want %q", err, tt.fails)
				}
				return
			}
			mustExchange(t, tt.client, s)
			mustExchange(t, tt.client, s)
			if got := conns.Load(); got != 1 {
				t.Errorf("%d connections, want 1", got)
			}
		})
	}
}

// pipes is an in-memory network with one TCP server.
type pipes struct {
	t      *testing.T
	delay  time.Duration
	opened atomic.Int32
	closed atomic.Int32
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	p.opened.Add(1)
	time.Sleep(p.delay)
	client, server := net.Pipe()
	go func() {
		defer p.closed.Add(1)
		defer server.Close()
		for q := readMessage(server); q != nil; q = readMessage(server) {
			writeMessage(server, reply(p.t, q, good))
		}
	}()
	return client, nil
}

func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{t: t}
		c := &resolve.Client{Dial: p.dial}
		s, _ := resolve.ParseServer("tcp://192.0.2.1")
		check := func(opened, closed int32) {
			t.Helper()
			synctest.Wait()
			if o, c := p.opened.Load(), p.closed.Load(); o != opened || c != closed {
				t.Errorf("%d connections opened and %d closed, want %d and %d", o, c, opened, closed)
			}
		}
		mustExchange(t, c, s)
		time.Sleep(9 * time.Second)
		mustExchange(t, c, s)
		time.Sleep(9 * time.Second)
		check(1, 0)
		time.Sleep(2 * time.Second)
		check(1, 1)
		mustExchange(t, c, s)
		check(2, 1)
		c.CloseIdle()
		check(2, 2)
	})
}

// TestLateConnection opens a connection whose callers have given up. It must be closed after idleTime.
func TestLateConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{t: t, delay: time.Second}
		c := &resolve.Client{Dial: p.dial}
		s, _ := resolve.ParseServer("tcp://192.0.2.1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Exchange(ctx, s, question("www.example.org.", dns.TypeA))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Exchange: %v, want a timeout", err)
		}
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if o, c := p.opened.Load(), p.closed.Load(); o != 1 || c != 1 {
			t.Errorf("%d connections opened and %d closed, want 1 and 1", o, c)
		}
	})
}

// TestClosedWhileOpening calls CloseIdle while a connection is being opened. The connection must not stay open.
func TestClosedWhileOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{t: t, delay: time.Second}
		c := &resolve.Client{Dial: p.dial}
		s, _ := resolve.ParseServer("tcp://192.0.2.1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := c.Exchange(ctx, s, question("www.example.org.", dns.TypeA))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Exchange: %v, want a timeout", err)
		}
		c.CloseIdle()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if o, c := p.opened.Load(), p.closed.Load(); o != 1 || c != 1 {
			t.Errorf("%d connections opened and %d closed, want 1 and 1", o, c)
		}
	})
}

// TestOneReplyPerConnection has a server that replies to the first of several queries and then closes the connection.
// All queries must get a reply (RFC 7766 §6.2.4).
func TestOneReplyPerConnection(t *testing.T) {
	const n = 5
	var first sync.Once
	s := serveTCP(t, func(conn net.Conn) {
		q := readMessage(conn)
		if q == nil {
			return
		}
		first.Do(func() {
			for range n - 1 {
				readMessage(conn)
			}
		})
		writeMessage(conn, reply(t, q, good))
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn) // otherwise the system resets the connection, and the reply may be lost
	})
	c := &resolve.Client{}
	var g errgroup.Group
	for range n {
		g.Go(func() error {
			_, err := c.Exchange(t.Context(), s, question("www.example.org.", dns.TypeA))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
