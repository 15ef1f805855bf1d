package resolver

import (
	"context"
	"errors"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
)

const (
	// hedgeAfter is how long the pods that were asked may be silent before one more is. A pod that has the answer, or gets it
	// from a resolver nearby, is done by then, also if it holds the reply for an agent that does not answer, which takes 250 ms unless
	// told otherwise. If a second pod were asked meanwhile, both would learn and write the same.
	hedgeAfter = 500 * time.Millisecond

	// askTimeout is how long a pod may take. It ends a query that nobody waits for any more, too.
	askTimeout = 2 * time.Second
)

var errNoPods = errors.New("no CoreDNS pod is ready")

// fan is a resolve.Exchanger that asks several CoreDNS pods the same at once.
//
// It is for the pods' sake: each has a cache and an upstream of its own, and what it answers a pod's plugin learns. So those
// who have not answered yet when the first answer is here are not stopped.
type fan struct {
	client resolve.Exchanger
	pods   *pods
	width  func(dnsname.Name) int    // how many pods are to learn the addresses of a name
	home   func(dnsname.Name) string // names with the same are asked for at the same pod
}

// heard is what one pod said.
type heard struct {
	reply *dns.Msg
	err   error
}

// Exchange implements resolve.Exchanger. The server is not looked at.
func (f *fan) Exchange(ctx context.Context, _ resolve.Server, query *dns.Msg) (*dns.Msg, error) {
	n, text := 1, query.Question[0].Name
	if name, err := dnsname.Parse(text); err == nil {
		n, text = f.width(name), f.home(name)
	}
	chosen, others := f.pods.pick(text, n, time.Now())
	if len(chosen) == 0 {
		return nil, errNoPods
	}
	replies := make(chan heard, len(chosen)+len(others))
	asked := 0
	ask := func(q *pod) {
		asked++
		go func() { replies <- f.ask(ctx, q, query) }()
	}
	for _, q := range chosen {
		ask(q)
	}

	var best heard
	hedge := time.NewTimer(hedgeAfter)
	defer hedge.Stop()
	for got := 0; got < asked; {
		select {
		case h := <-replies:
			got++
			if best.reply == nil && best.err == nil || h.rank() > best.rank() {
				best = h
			}
			if best.rank() == good {
				return best.reply, nil
			}
			// Of silent pods the next one may speak. Of one whose upstream fails one other is enough: their plugins count failures.
			if got == asked && len(others) > 0 && (best.rank() == silent || best.rank() == failed && asked == 1) {
				ask(others[0])
				others = others[1:]
			}
		case <-hedge.C:
			if len(others) > 0 {
				ask(others[0])
				others = others[1:]
				hedge.Reset(hedgeAfter)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return best.reply, best.err
}

// The ranks of what pods say, the better the greater. Of a name that one pod knows and another does not, it counts that
// it is known.
const (
	silent = iota // no reply
	failed        // a reply that it does not know
	denied        // there is no such name, or it has no such records
	good
)

func (h heard) rank() int {
	switch {
	case h.err != nil || h.reply == nil:
		return silent
	case h.reply.Rcode == dns.RcodeNameError || h.reply.Rcode == dns.RcodeSuccess && len(h.reply.Answer) == 0:
		return denied
	case h.reply.Rcode != dns.RcodeSuccess:
		return failed
	}
	return good
}

// ask asks one pod, to the end, also when ctx ends before.
func (f *fan) ask(ctx context.Context, q *pod, query *dns.Msg) heard {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	reply, err := f.client.Exchange(lasting, resolve.Server{Addr: q.addr}, query)
	f.pods.report(q, err == nil, time.Now())
	return heard{reply, err}
}
