package resolvers

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Health is how one address of a resolver answers.
type Health struct {
	ID      string        `json:"id"`
	Addr    netip.Addr    `json:"addr"`
	Answers bool          `json:"answers"`
	RTT     time.Duration `json:"rtt,omitempty"`
	Which   string        `json:"which,omitempty"` // what it calls the instance that answered (RFC 5001)
	Problem string        `json:"problem,omitempty"`
}

// parallel is how many addresses are asked at a time.
const parallel = 16

// Check asks every address of resolvers for the name servers of the root: a name that exists, and that every resolver has.
// A second question goes to who does not answer the first.
func Check(ctx context.Context, ex resolve.Exchanger, all []Resolver) []Health {
	var out []Health
	for _, r := range all {
		for _, a := range append(append([]netip.Addr{}, r.V4...), r.V6...) {
			out = append(out, Health{ID: r.ID, Addr: a})
		}
	}
	places := make(chan struct{}, parallel)
	var asking sync.WaitGroup
	for i := range out {
		asking.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			for range 2 {
				if out[i].ask(ctx, ex); out[i].Answers {
					return
				}
			}
		})
	}
	asking.Wait()
	return out
}

func (h *Health) ask(ctx context.Context, ex resolve.Exchanger) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	e := iterate.Ask(ctx, ex, time.Now(), iterate.Query{Zone: dnsname.Root, RD: true, NoDNSSEC: true,
		Server:   resolve.Server{Addr: netip.AddrPortFrom(h.Addr, 53)},
		Question: iterate.Question{Name: dnsname.Root, Type: rr.TypeNS}})
	h.RTT, h.Problem = e.RTT, e.Error
	if len(e.Reply) == 0 {
		return
	}
	view, err := e.View()
	if err != nil {
		h.Problem = err.Error()
		return
	}
	h.Which = view.NSID
	h.Answers = view.Rcode == "NOERROR" && len(view.Answer) > 0
	if h.Problem = ""; !h.Answers {
		h.Problem = "replies " + view.Rcode + " and has no answer"
	}
}
