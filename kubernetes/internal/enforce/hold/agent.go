package hold

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Handler performs the requests that an agent receives. Its methods are called from several goroutines.
type Handler interface {
	// Prefixes returns the prefixes of the pods that the agent serves, and a channel that is closed when they change.
	Prefixes() ([]netip.Prefix, <-chan struct{})
	// Program blocks until the switch has the addresses.
	Program(context.Context, Learned) error
	// Explain returns the state of an address of a pattern.
	Explain(ctx context.Context, pattern string, addr netip.Addr) (Explanation, error)
}

const (
	maxConns            = 256 // connections of plugins and of `explain` commands
	maxHandshakes       = 512 // connections that have not presented a certificate yet
	maxHandshakesPerNet = 16  // those from one address, or from one IPv6 /64
	maxPrograms         = 256 // concurrent requests per connection; further ones are not read until one is done
	handshakeTimeout    = 2 * time.Second
	acceptPause         = 50 * time.Millisecond
	maxLease            = 24 * time.Hour   // clients request at most this, and agents refuse more
	agentIdle           = 30 * time.Second // plugins ping every five seconds
)

// Serve handles connections to ln until ctx ends. It closes ln. conf must request and verify client certificates; see
// Files.Server.
func Serve(ctx context.Context, ln net.Listener, conf *tls.Config, h Handler) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxConns)
	d := &handshakeLimiter{from: map[netip.Prefix]int{}}
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			sleep(ctx, acceptPause) // a temporary error, such as too many open files
			continue
		}
		leave, ok := d.enter(conn.RemoteAddr())
		if !ok {
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer conn.Close()
			t := tls.Server(conn, conf)
			hctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
			err := t.HandshakeContext(hctx)
			cancel()
			leave()
			if err != nil {
				return
			}
			select {
			case slots <- struct{}{}:
				_ = serve(ctx, t, h)
				<-slots
			default: // plugins retry
			}
		})
	}
}

// handshakeLimiter limits unauthenticated connections per source network. Clients that never present a certificate thus
// cannot block clients with a certificate from other networks.
type handshakeLimiter struct {
	mu   sync.Mutex
	all  int
	from map[netip.Prefix]int
}

// enter admits a connection until leave is called.
func (d *handshakeLimiter) enter(a net.Addr) (leave func(), ok bool) {
	var from netip.Prefix
	if t, ok := a.(*net.TCPAddr); ok {
		addr := t.AddrPort().Addr().Unmap()
		from, _ = addr.Prefix(min(addr.BitLen(), 64)) // a client with an IPv6 address usually has a whole /64
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxHandshakes || d.from[from] >= maxHandshakesPerNet {
		return nil, false
	}
	d.all++
	d.from[from]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all--
		if d.from[from]--; d.from[from] == 0 {
			delete(d.from, from)
		}
	}, true
}

// serve handles one connection. It returns after all its goroutines have ended.
func serve(ctx context.Context, conn net.Conn, h Handler) error {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	a := &agentStream{stream: newStream(conn), handler: h, slots: make(chan struct{}, maxPrograms), cancel: cancel}
	wg.Go(func() { cancel(a.write(ctx)) })
	wg.Go(func() { a.announce(ctx) })
	for {
		m, err := a.read(agentIdle)
		if err != nil {
			return err
		}
		switch m.Op {
		case opPing:
			a.reply(message{Op: opPong, ID: m.ID})
		case opProgram, opExplain:
			select {
			case a.slots <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			wg.Go(func() {
				defer func() { <-a.slots }()
				a.reply(a.handle(ctx, m))
			})
		}
	}
}

// agentStream is the connection to one plugin, on the agent's side.
type agentStream struct {
	*stream
	handler Handler
	slots   chan struct{}
	cancel  context.CancelCauseFunc
}

// reply queues a reply. A plugin that does not read its replies is disconnected.
func (a *agentStream) reply(m message) {
	if err := a.send(m); err != nil {
		a.cancel(err)
	}
}

// announce sends the prefixes now and whenever they change.
func (a *agentStream) announce(ctx context.Context) {
	op := opHello
	for {
		prefixes, changed := a.handler.Prefixes()
		a.reply(message{Op: op, Version: version, Prefixes: prefixes})
		op = opPrefixes
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (a *agentStream) handle(ctx context.Context, m message) message {
	if m.Op == opExplain {
		if len(m.Addrs) != 1 {
			return message{Op: opExplained, ID: m.ID, Error: "explain needs exactly one address"}
		}
		e, err := a.handler.Explain(ctx, m.Pattern, m.Addrs[0])
		return message{Op: opExplained, ID: m.ID, Explained: &e, Error: text(err)}
	}
	l, err := m.learned()
	if err == nil {
		err = a.handler.Program(ctx, l)
	}
	return message{Op: opDone, ID: m.ID, Error: text(err)}
}

// learned returns the addresses in a message, or an error if they are not valid.
func (m message) learned() (Learned, error) {
	if m.LeaseMS <= 0 || m.LeaseMS > maxLease.Milliseconds() {
		return Learned{}, fmt.Errorf("lease of %d ms is not between 1 ms and %v", m.LeaseMS, maxLease)
	}
	if len(m.Addrs) == 0 || len(m.Addrs) > maxAddrs {
		return Learned{}, fmt.Errorf("%d addresses in one message", len(m.Addrs))
	}
	for _, a := range m.Addrs {
		if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
			return Learned{}, fmt.Errorf("%q is not a host address", a)
		}
	}
	return Learned{Pattern: m.Pattern, Name: m.Name, Addrs: m.Addrs, Lease: time.Duration(m.LeaseMS) * time.Millisecond},
		nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
