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
	// hedgeAfter is the time without a reply after which another pod is queried. A pod that has the answer, or gets it
	// from a resolver nearby, replies earlier. This includes a pod that holds the reply for an agent that does not answer,
	// which takes 250 ms by default. If a second pod were queried meanwhile, both would learn and write the same.
	hedgeAfter = 500 * time.Millisecond

	// askTimeout is the maximum duration of a query to a pod. It also ends queries whose result is no longer needed.
	askTimeout = 2 * time.Second
)

var errNoPods = errors.New("no CoreDNS pod is ready")

// fan is a resolve.Exchanger that sends a query to several CoreDNS pods at once.
//
// Each pod has its own cache and upstream, and its plugin learns from the answer. The queries that are still in
// progress after the first answer are therefore not cancelled.
type fan struct {
	client resolve.Exchanger
	pods   *pods
	width  func(dnsname.Name) int    // number of pods that should learn the addresses of a name
	home   func(dnsname.Name) string // key that selects the pod; names with the same key go to the same pod
}

// heard is the result of one query.
type heard struct {
	reply *dns.Msg
	err   error
}

// Exchange implements resolve.Exchanger. It ignores the server.
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
			// If the pods are silent, try the next one. If the upstream of one pod fails, one other is enough: their plugins
			// count failures.
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

// Ranks of results; a higher one is better. If one pod knows a name and another does not, the name exists.
const (
	silent = iota // no reply
	failed        // a reply with an error
	denied        // no such name, or no such records
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

// ask queries one pod to the end, even if ctx ends earlier.
func (f *fan) ask(ctx context.Context, q *pod, query *dns.Msg) heard {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	reply, err := f.client.Exchange(lasting, resolve.Server{Addr: q.addr}, query)
	f.pods.report(q, err == nil, time.Now())
	return heard{reply, err}
}
