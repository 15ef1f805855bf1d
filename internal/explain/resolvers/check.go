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

// Health is the result of the check of one address of a resolver.
type Health struct {
	ID        string        `json:"id"`
	Addr      netip.Addr    `json:"addr,omitzero"`
	Answers   bool          `json:"answers"` // it resolves names
	RTT       time.Duration `json:"rtt"`
	Rcode     string        `json:"rcode,omitempty"`
	Validates bool          `json:"validates"`          // the reply had the AD bit
	Instance  string        `json:"instance,omitempty"` // identity of the server that answered, from NSID or id.server
	Problem   string        `json:"problem,omitempty"`
	Queries   int           `json:"queries"`
}

const (
	perAddress   = 2 // limit of queries
	checkTimeout = 2 * time.Second
	concurrency  = 32
)

// Check asks all addresses of resolvers for the SOA record of the root. All resolvers have this record, so the query
// leaves no trace in their caches. A second query goes to addresses that did not reply or did not identify
// themselves.
func Check(ctx context.Context, x resolve.Exchanger, list []Resolver) []Health {
	var out []Health
	var servers []resolve.Server
	for _, r := range list {
		at := r.Servers()
		if len(at) == 0 {
			out = append(out, Health{ID: r.ID, Problem: "not asked: it has no address in the list"})
			servers = append(servers, resolve.Server{})
		}
		for _, s := range at {
			out, servers = append(out, Health{ID: r.ID, Addr: s.Addr.Addr()}), append(servers, s)
		}
	}
	slots := make(chan struct{}, concurrency)
	var group sync.WaitGroup
	for i := range out {
		if out[i].Problem != "" {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			out[i].ask(ctx, x, servers[i])
		})
	}
	group.Wait()
	return out
}

func (h *Health) ask(ctx context.Context, x resolve.Exchanger, server resolve.Server) {
	q := iterate.Query{Server: server, RD: true, Question: iterate.Question{Name: dnsname.Root, Type: rr.TypeSOA}}
	for h.Queries < perAddress {
		e := h.send(ctx, x, q)
		if v, err := e.View(); err == nil {
			h.read(e, v)
			break
		}
		h.Problem = e.Error
		if !e.Class.Transport() {
			return
		}
	}
	if !h.Answers || h.Instance != "" || h.Queries >= perAddress {
		return
	}
	q = iterate.Query{Server: server, Chaos: true, NoDNSSEC: true,
		Question: iterate.Question{Name: dnsname.MustParse("id.server."), Type: rr.TypeTXT}}
	if v, err := h.send(ctx, x, q).View(); err == nil && len(v.Answer) > 0 && v.Answer[0].Type == rr.TypeTXT {
		h.Instance = characters(v.Answer[0].Data)
	}
}

func (h *Health) send(ctx context.Context, x resolve.Exchanger, q iterate.Query) iterate.Exchange {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	h.Queries++
	return iterate.Ask(ctx, x, time.Now(), q)
}

func (h *Health) read(e iterate.Exchange, v iterate.View) {
	h.RTT, h.Rcode, h.Validates, h.Instance, h.Problem = e.RTT, v.Rcode, v.AD, v.NSID, ""
	h.Answers = v.Rcode == "NOERROR" && len(iterate.Records(v.Answer, dnsname.Root, rr.TypeSOA)) > 0
	switch {
	case h.Answers:
	case v.Rcode == "NOERROR":
		h.Problem = "replies without the SOA record of the root: it does not resolve names"
	default:
		h.Problem = "replies " + v.Rcode
	}
}

// characters returns the first string of a TXT record.
func characters(data string) string {
	if len(data) < 1 || len(data) < 1+int(data[0]) {
		return ""
	}
	return data[1 : 1+int(data[0])]
}
