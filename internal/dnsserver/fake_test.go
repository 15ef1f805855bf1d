package dnsserver

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/wire"
)

// found is the answer of a fake upstream for a name and type.
type found struct {
	rcode       uint8
	answers     []string
	authorities []string
	ad          bool
	ede         int // 0 for none
	stale       bool
}

// fake is a Forwarder with fixed answers. Other names do not exist.
type fake struct {
	knows  map[string]found // by name and type
	cached bool             // Cached returns them
	denies netip.Prefix     // the clients that may not use it
	hold   chan struct{}    // Exchange blocks until it is closed; nil: it does not block
	begun  chan string      // receives the names that Exchange is called with; nil: none

	mu     sync.Mutex
	asked  []forward.Question
	bodies map[string]body // by name and type, created on first use
}

// body is records in wire form, without header and question.
type body struct {
	found
	wire []byte
}

const negativeSOA = "net. 60 IN SOA a.net. h.net. 1 2 3 4 60"

func (f *fake) Allowed(client netip.Addr) bool { return !f.denies.Contains(client) }

func (f *fake) Cached(q forward.Question, _ time.Time, msg []byte) (forward.Reply, bool) {
	if !f.cached {
		return forward.Reply{}, false
	}
	return f.find(q, msg), true
}

func (f *fake) Exchange(ctx context.Context, q forward.Question, msg []byte) forward.Reply {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if f.begun != nil {
		f.begun <- nameOf(q.Name)
	}
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return forward.Reply{Msg: msg, Rcode: wire.RcodeServFail, EDE: wire.EDENoReachable}
		}
	}
	return f.find(q, msg)
}

// find returns an answer as the Forwarder contract requires: records appended after the question, or truncated.
func (f *fake) find(q forward.Question, msg []byte) forward.Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	var buf [300]byte
	key := append(append(buf[:0], q.Name...), byte(q.Type>>8), byte(q.Type))
	b, ok := f.bodies[string(key)]
	if !ok {
		b = f.body(q)
		if len(f.bodies) == 0 || len(f.bodies) > 1000 {
			f.bodies = map[string]body{}
		}
		f.bodies[string(key)] = b
	}
	r := forward.Reply{Msg: msg, Rcode: b.rcode, AD: b.ad, Stale: b.stale, EDE: wire.EDENone}
	if b.ede != 0 {
		r.EDE = b.ede
	}
	if len(msg)+len(b.wire) > cap(msg) {
		r.Truncated = true
		return r
	}
	r.Msg, r.Answers, r.Authorities = append(msg, b.wire...), len(b.answers), len(b.authorities)
	return r
}

func (f *fake) body(q forward.Question) body {
	name := nameOf(q.Name)
	a, ok := f.knows[name+" "+q.Type.String()]
	if !ok {
		a = found{rcode: wire.RcodeNXDomain, authorities: []string{negativeSOA}}
	}
	m := question(name, uint16(q.Type))
	m.Compress = true
	for i, list := range [][]string{a.answers, a.authorities} {
		for _, s := range list {
			rr, err := dns.NewRR(s)
			if err != nil {
				panic(err)
			}
			if i == 0 {
				m.Answer = append(m.Answer, rr)
			} else {
				m.Ns = append(m.Ns, rr)
			}
		}
	}
	packed, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return body{a, packed[wire.HeaderSize+len(q.Name)+4:]}
}

// began blocks until Exchange was called n more times.
func (f *fake) began(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-f.begun:
		case <-time.After(patience):
			t.Fatal("the forwarder is not asked")
		}
	}
}

// exchanges returns the number of calls of Exchange.
func (f *fake) exchanges() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// nameOf returns the text of the name that the forwarder is asked for. It panics when the name is malformed.
func nameOf(wire []byte) string {
	name, n, err := dns.UnpackDomainName(wire, 0)
	if err != nil || n != len(wire) || name != strings.ToLower(name) {
		panic(fmt.Sprintf("the forwarder was asked for %x", wire))
	}
	return name
}

// desired returns a query with RD.
func desired(name string, qtype uint16) *dns.Msg {
	m := question(name, qtype)
	m.RecursionDesired = true
	return m
}

// settle answers a query as a socket would, including the wait for the forwarder.
func settle(h *handler, message []byte, from client) []byte {
	out := make([]byte, h.settings.udpSize)
	if from.tcp {
		out = make([]byte, writeBuffer)
	}
	n := h.answer(message, out, from)
	if n != replyLater {
		return out[:n]
	}
	w := h.settings.pending
	if !h.tryAdmit() {
		return out[:h.overloaded()]
	}
	to := &waiter{out: out, done: make(chan struct{})}
	w.start(h, to)
	<-to.done
	return to.out
}

// waiter is a client in memory.
type waiter struct {
	out  []byte
	done chan struct{}
}

func (w *waiter) reply(compose func([]byte) int) error {
	w.out = w.out[:compose(w.out)]
	return nil
}

func (w *waiter) release() { close(w.done) }
