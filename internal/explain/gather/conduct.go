package gather

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// fields are where the results of probes belong. Case is not among the kinds: the walk has seen to it.
var fields = map[probe.Kind]func(*explain.Server) *explain.Probe{
	probe.Source:    func(s *explain.Server) *explain.Probe { return &s.Source },
	probe.Version:   func(s *explain.Server) *explain.Probe { return &s.EDNSVersion },
	probe.Option:    func(s *explain.Server) *explain.Probe { return &s.EDNSOption },
	probe.Flag:      func(s *explain.Server) *explain.Probe { return &s.EDNSFlag },
	probe.Types:     func(s *explain.Server) *explain.Probe { return &s.Types },
	probe.Size:      func(s *explain.Server) *explain.Probe { return &s.Truncation },
	probe.Recursion: func(s *explain.Server) *explain.Probe { return &s.Recursion },
	probe.Transfer:  func(s *explain.Server) *explain.Probe { return &s.Transfer },
}

// probeQueries is how many queries it takes to look into a server that replies to all of them.
const probeQueries = 10

// probed is the result of a probe, and the exchange that shows it.
type probed struct {
	probe.Result
	id int
}

// conduct looks into the servers of the zone, as far as the budget reaches; the rest is not known. Those that are no authorities
// for it are left out: that they refuse what is unusual says nothing.
func (r *run) conduct() {
	if r.Prober == nil {
		return
	}
	zone := r.found(r.facts.Zone)
	good := r.good(zone)
	first, rest := oneOfEach(zone, good)
	most := r.budget.Left() / probeQueries
	if most < len(first) { // without the rest, each host is known
		r.limit(r.budget.String())
	}
	servers := slices.Concat(first, rest)
	servers = servers[:min(most, len(servers))]
	var mu sync.Mutex // guards done
	done := 0
	var group sync.WaitGroup
	for _, s := range r.addrs(zone) {
		if !slices.Contains(good, s) && r.trace.Health(s) != iterate.Unchecked {
			group.Go(func() { r.probe(s, []probe.Kind{probe.Source}) }) // it may reply from another address, where nobody listens
		}
	}
	for _, s := range servers {
		group.Go(func() {
			r.probe(s, probe.Kinds)
			mu.Lock()
			defer mu.Unlock()
			done++
			r.tell(StageServers, s.String(), done, len(servers))
		})
	}
	group.Wait()
	r.askRevived(zone)
	r.told(StageServers)
}

// askRevived asks the servers again that did not reply before and have done so meanwhile: what was lost was lost on the way.
func (r *run) askRevived(z *iterate.Zone) {
	var qs []iterate.Query
	for _, s := range r.addrs(z) {
		replied := slices.ContainsFunc(r.probes[s], func(p probed) bool { return p.Kind == probe.Source && p.Verdict == probe.Yes })
		if replied && r.trace.Health(s) == iterate.Down {
			qs = append(qs, to(z.Name, s, z.Name, rr.TypeSOA))
		}
	}
	r.askAll(qs)
}

// oneOfEach are one address of each host, and the others. If the budget does not reach for all, it shall for all hosts.
func oneOfEach(z *iterate.Zone, servers []netip.Addr) (first, rest []netip.Addr) {
	for _, h := range z.Hosts {
		had := false
		for _, a := range h.Addrs() {
			switch {
			case !slices.Contains(servers, a) || slices.Contains(first, a) || slices.Contains(rest, a):
			case had:
				rest = append(rest, a)
			default:
				first, had = append(first, a), true
			}
		}
	}
	return first, rest
}

func (r *run) probe(server netip.Addr, kinds []probe.Kind) {
	p := probe.Prober{Dial: r.Prober.Dial, Listen: r.Prober.Listen, Timeout: r.Prober.Timeout, Port: r.Prober.Port}
	p.Before = func(ctx context.Context) error {
		if err := r.budget.Turn(ctx, server); err != nil {
			r.refused()
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unusual++
		return nil
	}
	for _, got := range p.Probe(r.ctx, r.facts.Zone, server, kinds) {
		id := r.record(r.exchangeOf(server, got))
		r.mu.Lock()
		r.probes[server] = append(r.probes[server], probed{got, id})
		r.strange[id] = true
		r.mu.Unlock()
	}
}

// maxEvidence is how much of a reply is kept: of a zone that is given away, its contents are nobody's business.
const maxEvidence = 4096

// exchangeOf is a probe as an exchange. It counts for nothing else: a server that drops what is unusual is not out of reach.
func (r *run) exchangeOf(server netip.Addr, p probe.Result) iterate.Exchange {
	e := iterate.Exchange{At: r.at(p.At), RTT: p.RTT, Zone: r.facts.Zone, Server: server, Transport: p.Transport.String(),
		Question: iterate.Question{Name: p.Name, Type: p.Type}, Try: p.Sent, EDNS: p.EDNS, Class: iterate.Unknown, Reply: p.Reply}
	switch m, err := e.Message(); {
	case p.Sent == 0:
		e.At = 0
		e.Error = p.Detail
	case m == nil || err != nil:
		e.Class, e.Error, e.Reply = iterate.Timeout, "no reply in time", nil
	default:
		e.Class = iterate.Classify(r.facts.Zone, e.Question, m, nil)
	}
	if len(e.Reply) > maxEvidence {
		e.Reply, e.Error = nil, "the reply is too long to be kept"
	}
	return e
}

// addProbes adds what was found out about a server by unusual queries. Of several of a kind, one that went wrong counts.
func (r *run) addProbes(s *explain.Server) {
	if s.Zone != r.facts.Zone {
		return
	}
	found := map[probe.Kind]*explain.Probe{}
	for _, p := range r.probes[s.Addr] {
		f := found[p.Kind]
		if f == nil {
			f = &explain.Probe{}
			found[p.Kind] = f
		}
		detail := p.Detail
		if p.Kind == probe.Types && p.Verdict == probe.No {
			detail = p.Type.String() + ": " + detail
		}
		tell(f, explain.Fact(p.Verdict), detail, p.id)
	}
	for kind, f := range found {
		field := fields[kind](s)
		if field.Fact != explain.No { // what ordinary queries showed to be wrong stays wrong
			*field = *f
		}
	}
}
