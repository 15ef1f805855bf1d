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

// found is what a fake upstream says of a name and type.
type found struct {
	rcode       uint8
	answers     []string
	authorities []string
	ad          bool
	ede         int // 0 for none
	stale       bool
}

// fake is a Forwarder that knows some answers. What it does not know does not exist.
type fake struct {
	knows  map[string]found // by name and type
	cached bool             // it knows them at once
	denies netip.Prefix     // the clients that may not ask
	hold   chan struct{}    // Exchange waits until it is closed; nil: not at all
	begun  chan string      // gets the names that Exchange is asked for; nil: nobody listens

	mu     sync.Mutex
	asked  []forward.Question
	bodies map[string]body // by name and type, once they were wanted
}

// body is records in wire form behind a question.
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

// find gives an answer as the contract has it: behind the question, pointing to it, or not at all.
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

// began returns when Exchange was called n times more.
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

// times is how often Exchange was called.
func (f *fake) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

// nameOf is the name that the forwarder is asked for, which must be one.
func nameOf(wire []byte) string {
	name, n, err := dns.UnpackDomainName(wire, 0)
	if err != nil || n != len(wire) || name != strings.ToLower(name) {
		panic(fmt.Sprintf("the forwarder was asked for %x", wire))
	}
	return name
}

// desired is a query with RD.
func desired(name string, qtype uint16) *dns.Msg {
	m := question(name, qtype)
	m.RecursionDesired = true
	return m
}

// settle answers a query as a socket would, with the wait for the forwarder in between if there is one.
func settle(h *handler, message []byte, from client) []byte {
	out := make([]byte, h.settings.udpSize)
	if from.tcp {
		out = make([]byte, writeBuffer)
	}
	n := h.answer(message, out, from)
	if n != later {
		return out[:n]
	}
	w := h.settings.waiting
	if !h.mayWait() {
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
