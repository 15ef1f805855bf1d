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

// Handler is what an agent does with what it is told. Its methods are called from several goroutines.
type Handler interface {
	// Prefixes are those of the pods the agent serves, and a channel that is closed when they are no longer true.
	Prefixes() ([]netip.Prefix, <-chan struct{})
	// Program returns when the switch has the addresses.
	Program(context.Context, Learned) error
	// Explain tells what is known of an address of a pattern.
	Explain(ctx context.Context, pattern string, addr netip.Addr) (Explanation, error)
}

const (
	maxConns      = 256 // plugins, and people who ask why
	maxStrangers  = 512 // connections that have not shown a certificate yet
	maxOfOne      = 16  // of them from one address
	maxPrograms   = 256 // of one connection at a time; more are not read until one is done
	handshakeTime = 2 * time.Second
	acceptPause   = 50 * time.Millisecond
	maxLease      = 24 * time.Hour   // clients ask for no more, and agents refuse more
	agentIdle     = 30 * time.Second // plugins ping every five
)

// Serve answers all who connect to ln, until ctx ends. It closes ln. conf asks for and checks certificates of clients; see
// Files.Server.
func Serve(ctx context.Context, ln net.Listener, conf *tls.Config, h Handler) error {
	stop := context.AfterFunc(ctx, func() { ln.Close() })
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxConns)
	d := &door{from: map[netip.Prefix]int{}}
	for {
		conn, err := ln.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			sleep(ctx, acceptPause) // too many open files, or the like: that passes
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
			hctx, cancel := context.WithTimeout(ctx, handshakeTime)
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
			default: // plugins try again
			}
		})
	}
}

// door counts strangers, so that those who never show a certificate keep nobody out who has one: not those of another address.
type door struct {
	mu   sync.Mutex
	all  int
	from map[netip.Prefix]int
}

// enter lets a stranger in, until leave is called.
func (d *door) enter(a net.Addr) (leave func(), ok bool) {
	var from netip.Prefix
	if t, ok := a.(*net.TCPAddr); ok {
		addr := t.AddrPort().Addr().Unmap()
		from, _ = addr.Prefix(min(addr.BitLen(), 64)) // whoever has one address of IPv6 has a network of them
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxStrangers || d.from[from] >= maxOfOne {
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

// serve speaks with one plugin. It returns when all it started has ended.
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

// agentStream is one plugin, seen from the agent.
type agentStream struct {
	*stream
	handler Handler
	slots   chan struct{}
	cancel  context.CancelCauseFunc
}

// reply queues an answer; a plugin that takes none is dropped.
func (a *agentStream) reply(m message) {
	if err := a.send(m); err != nil {
		a.cancel(err)
	}
}

// announce tells the prefixes, now and whenever they change.
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
			return message{Op: opExplained, ID: m.ID, Error: "one address is expected"}
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

// learned is what a message says was learned, if that can be.
func (m message) learned() (Learned, error) {
	if m.LeaseMS <= 0 || m.LeaseMS > maxLease.Milliseconds() {
		return Learned{}, fmt.Errorf("a lease of %d ms: it is from 1 ms to %v", m.LeaseMS, maxLease)
	}
	if len(m.Addrs) == 0 || len(m.Addrs) > maxAddrs {
		return Learned{}, fmt.Errorf("%d addresses in one message", len(m.Addrs))
	}
	for _, a := range m.Addrs {
		if !a.IsValid() || a.Is4In6() || a.Zone() != "" {
			return Learned{}, fmt.Errorf("%q is no address of a host", a)
		}
	}
	return Learned{Pattern: m.Pattern, Name: m.Name, Addrs: m.Addrs, Lease: time.Duration(m.LeaseMS) * time.Millisecond}, nil
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
