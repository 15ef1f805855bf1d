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

// probeFields maps each kind of probe to the field of its result. Server.Case is missing: ordinary replies show it.
var probeFields = map[probe.Kind]func(*explain.Server) *explain.Probe{
	probe.Source:    func(s *explain.Server) *explain.Probe { return &s.Source },
	probe.Version:   func(s *explain.Server) *explain.Probe { return &s.EDNSVersion },
	probe.Option:    func(s *explain.Server) *explain.Probe { return &s.EDNSOption },
	probe.Flag:      func(s *explain.Server) *explain.Probe { return &s.EDNSFlag },
	probe.Types:     func(s *explain.Server) *explain.Probe { return &s.Types },
	probe.Size:      func(s *explain.Server) *explain.Probe { return &s.Truncation },
	probe.Recursion: func(s *explain.Server) *explain.Probe { return &s.Recursion },
	probe.Transfer:  func(s *explain.Server) *explain.Probe { return &s.Transfer },
}

// probeQueries is the number of queries to a server that replies to all probes.
const probeQueries = 10

// probeResult is the result of a probe, and the index of its exchange.
type probeResult struct {
	probe.Result
	id int
}

// probeServers probes the servers of the zone as far as the budget allows; the others stay unknown. Servers that are
// not authoritative for the zone are not probed: if they refuse unusual queries, that says nothing.
func (r *run) probeServers() {
	if r.Prober == nil {
		return
	}
	zone := r.zoneAt(r.facts.Zone)
	good := r.usableServers(zone)
	first, rest := oneAddressPerHost(zone, good)
	// The second addresses of hosts are less important than the records of mail.
	most := min(r.budget.Left()/probeQueries, max(len(first), (r.budget.Left()-mailQueries)/probeQueries))
	if most < len(first) { // otherwise at least one address of each host is probed
		r.addLimit(r.budget.String())
	}
	servers := slices.Concat(first, rest)
	servers = servers[:min(most, len(servers))]
	var mu sync.Mutex // guards done
	done := 0
	var group sync.WaitGroup
	for _, s := range r.addrs(zone) {
		if !slices.Contains(good, s) && r.trace.Health(s) != iterate.Unchecked {
			// It may reply from another address, which an ordinary query does not notice.
			group.Go(func() { r.probe(s, []probe.Kind{probe.Source}) })
		}
	}
	for _, s := range servers {
		group.Go(func() {
			r.probe(s, probe.Kinds)
			mu.Lock()
			defer mu.Unlock()
			done++
			r.reportProgress(StageServers, s.String(), done, len(servers))
		})
	}
	group.Wait()
	r.askRecovered(zone)
	r.reportStage(StageServers)
}

// askRecovered repeats the SOA query to servers that did not reply on the walk but replied to a probe: packets were
// lost.
func (r *run) askRecovered(z *iterate.Zone) {
	var qs []iterate.Query
	for _, s := range r.addrs(z) {
		replied := slices.ContainsFunc(r.probes[s],
			func(p probeResult) bool { return p.Kind == probe.Source && p.Verdict == probe.Yes })
		if replied && r.trace.Health(s) == iterate.Down {
			qs = append(qs, newQuery(z.Name, s, z.Name, rr.TypeSOA))
		}
	}
	r.askAll(qs)
}

// oneAddressPerHost returns one address of each host, and the other addresses. A small budget then covers every host.
func oneAddressPerHost(z *iterate.Zone, servers []netip.Addr) (first, rest []netip.Addr) {
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
		if err := r.budget.Wait(ctx, server); err != nil {
			r.addUnsent()
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unusualQueries++
		return nil
	}
	for _, got := range p.Probe(r.ctx, r.facts.Zone, server, kinds) {
		id := r.addExchange(r.exchangeOf(server, got))
		r.mu.Lock()
		r.probes[server] = append(r.probes[server], probeResult{got, id})
		r.unusual[id] = true
		r.mu.Unlock()
	}
}

// maxEvidence limits the size of a recorded reply. If a server allows zone transfers, the content of the zone stays
// private.
const maxEvidence = 4096

// exchangeOf converts a probe to an exchange. Its class does not affect the health of the server: a server that drops
// unusual queries is still reachable.
func (r *run) exchangeOf(server netip.Addr, p probe.Result) iterate.Exchange {
	e := iterate.Exchange{At: r.sinceStart(p.At), RTT: p.RTT, Zone: r.facts.Zone, Server: server,
		Transport: p.Transport.String(),
		Question:  iterate.Question{Name: p.Name, Type: p.Type}, Try: p.Sent, EDNS: p.EDNS, Class: iterate.Unknown,
		Reply: p.Reply}
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
		e.Reply, e.Error = nil, "the reply is too long to be recorded"
	}
	return e
}

// addProbes adds the results of probes to a server. If several probes of a kind differ, a failure wins.
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
		addEvidence(f, explain.Fact(p.Verdict), detail, p.id)
	}
	for kind, f := range found {
		field := probeFields[kind](s)
		if field.Fact != explain.No { // a failure of an ordinary query wins
			*field = *f
		}
	}
}
