package iterate

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
)

// ErrNotRecorded is the error of a Replay that is asked what its trace does not have.
var ErrNotRecorded = errors.New("the trace has no such exchange")

// Replay is an Exchanger that answers from a Trace: to the n-th query of a kind with what came of the n-th one then. An
// Iterator that asks it makes the same trace again, times included, and spends no budget.
type Replay struct {
	trace *Trace

	mu   sync.Mutex // guards the following
	left map[recordKey][]Exchange
}

type recordKey struct {
	server    netip.Addr
	transport string
	q         Question
}

// NewReplay makes a Replay of a trace, which must not change any more.
func NewReplay(t *Trace) *Replay {
	p := &Replay{trace: t, left: map[recordKey][]Exchange{}}
	for _, e := range t.Exchanges {
		if e.Try > 0 || e.Class == Unknown {
			k := recordKey{e.Server, e.Transport, e.Question}
			p.left[k] = append(p.left[k], e)
		}
	}
	return p
}

// Options are those with which an Iterator asks what was asked for the trace.
func (p *Replay) Options() Options {
	return Options{Hints: p.trace.Hints, NoMinimise: !p.trace.Minimised, NoDNSSEC: !p.trace.DNSSEC, Fast: p.trace.Fast, ECS: p.trace.ECS,
		Family: p.trace.Family, RootAddrs: p.trace.RootAddrs, Probe: p.trace.Probe}
}

// Exchange implements resolve.Exchanger.
func (p *Replay) Exchange(ctx context.Context, server resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	if len(query.Question) != 1 {
		return nil, errors.New("a query has one question")
	}
	name, err := dnsname.Parse(query.Question[0].Name)
	if err != nil {
		return nil, err
	}
	q := Question{name, rr.Type(query.Question[0].Qtype)}
	e, ok := p.take(recordKey{server.Addr.Addr(), server.Transport.String(), q})
	if !ok {
		return nil, fmt.Errorf("ask %s for %v: %w", server, q, ErrNotRecorded)
	}
	if past, ok := ctx.Value(recollectionKey{}).(*recollection); ok {
		*past = recollection{true, e.At, e.RTT, e.Try}
	}
	if e.Error == "" {
		return reply(e, query)
	}
	if e.Class == Truncated {
		if err := resolve.Again(ctx); err != nil {
			return nil, err
		}
		return p.Exchange(ctx, resolve.Server{Transport: resolve.TCP, Addr: server.Addr}, query)
	}
	return nil, &recalled{e.Class, e.Error}
}

func (p *Replay) take(k recordKey) (Exchange, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left[k]
	if len(left) == 0 {
		return Exchange{}, false
	}
	p.left[k] = left[1:]
	return left[0], true
}

// rest are the exchanges that were not asked for. A walk may have tried a server because another was slow, which a replay,
// in which none is, has no need for.
func (p *Replay) rest() (out []Exchange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, left := range p.left {
		out = append(out, left...)
	}
	return out
}

// reply is the recorded reply to a query of the same question.
func reply(e Exchange, query *dns.Msg) (*dns.Msg, error) {
	m, err := e.Message()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, fmt.Errorf("%w: the one of %v has neither reply nor error", ErrNotRecorded, e.Question)
	}
	m.Id = query.Id
	return m, nil
}

// recalled is the error of an exchange of the past.
type recalled struct {
	class Class
	text  string
}

func (e *recalled) Error() string { return e.text }

// recollection is when a replayed exchange took place. It travels with the context, as Exchangers return no times.
type recollection struct {
	known   bool
	at, rtt time.Duration
	try     int
}

type recollectionKey struct{}
