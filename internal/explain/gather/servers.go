package gather

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/wire"
)

// serversOf returns the servers of the zones on the path to the name, and how they behaved.
func (r *run) serversOf(recs []record) (out []explain.Server) {
	for _, z := range r.trace.Zones {
		if z.Quick {
			continue
		}
		for _, h := range z.Hosts {
			for _, a := range h.Addrs() {
				s := explain.Server{Zone: z.Name, Host: h.Name, Addr: a, Listed: listed(z, h.Name)}
				out = append(out, r.server(s, recs))
			}
		}
	}
	for _, p := range r.plans {
		s := explain.Server{Zone: r.facts.Zone, Host: p.host, Addr: p.addr, Listed: []string{"plan"}}
		out = append(out, r.server(s, recs))
	}
	return out
}

// listed returns which sides of the delegation list a server: "parent", "child".
func listed(z iterate.Zone, host dnsname.Name) []string {
	out := []string{}
	for _, who := range []struct {
		name string
		sets []iterate.NSSet
	}{{"parent", z.ParentNS}, {"child", z.ChildNS}} {
		if slices.ContainsFunc(who.sets, func(s iterate.NSSet) bool { return slices.Contains(s.NS, host) }) {
			out = append(out, who.name)
		}
	}
	return out
}

// server fills in what the exchanges with one address show. Exchanges of all zones count for its transport, because
// one address often serves several zones, and a zone alone has too few queries to distinguish loss from chance.
func (r *run) server(s explain.Server, recs []record) explain.Server {
	own := slices.DeleteFunc(slices.Clone(recs), func(e record) bool { return e.Server != s.Addr || e.unusual })
	s.Class = iterate.Unknown
	var rtts []time.Duration
	for _, e := range own {
		if e.ordinary() {
			s.Sent++
			if e.Class.Transport() {
				s.Lost++
			}
			if e.view != nil {
				rtts = append(rtts, e.RTT)
			}
		}
		r.readReply(&s, e)
	}
	s.Class = classOf(s, own)
	s.Health = iterate.HealthOf(s.Sent, s.Lost)
	if slices.Sort(rtts); len(rtts) > 0 {
		// The median: the first query to a server may wait for ARP, and a mean would keep that.
		s.RTT = rtts[len(rtts)/2]
	}
	s.TCP, s.EDNS, s.Case = tcp(own), edns(own), echoes(own)
	s.Truncation, s.Limits, s.NegativeSOA = truncation(own), limits(own), negativeSOA(s.Zone, own)
	r.addProbes(&s)
	return s
}

// ordinary reports whether every reachable server replies to such a query. Silence over TCP, or to types that are
// newer than the server, is a property of the server and not packet loss.
func (e record) ordinary() bool {
	t := e.Question.Type
	return e.Try > 0 && e.Class != iterate.Unknown && e.Transport == resolve.UDP.String() &&
		(t == rr.TypeSOA || t == rr.TypeNS || t == rr.TypeA || t == rr.TypeAAAA)
}

// readReply adds to s what a reply shows about the server and its version of the zone.
func (r *run) readReply(s *explain.Server, e record) {
	if e.Zone == s.Zone && (e.Question.Name == s.Zone || e.Class == iterate.Referral) {
		s.Evidence = append(s.Evidence, e.id)
	}
	if e.view == nil {
		return
	}
	if e.view.NSID != "" {
		s.NSID = e.view.NSID
	}
	if e.Class == iterate.Referral {
		s.Referral = max(s.Referral, e.view.Size)
	}
	if e.Zone == s.Zone && e.Class == iterate.Answer && e.Question == (iterate.Question{Name: s.Zone, Type: rr.TypeSOA}) {
		soa := soaOf(e.view.Answer)
		if s.SOA != nil && soa != nil && s.SOA.Serial != soa.Serial {
			s.Was = s.SOA.Serial
		}
		s.SOA = soa
	}
}

// classOf returns the class of the reply to the SOA query. A server that does not reply is not asked for the SOA;
// then the class of its other replies counts.
func classOf(s explain.Server, own []record) iterate.Class {
	best, rank := iterate.Unknown, 0
	for _, e := range own {
		if e.Zone != s.Zone || e.Class == iterate.Unknown {
			continue
		}
		n := 1
		switch t := e.Question.Type; {
		case e.Question.Name != s.Zone:
		case t == rr.TypeSOA && e.Transport == resolve.UDP.String():
			n = 5
		case t == rr.TypeSOA:
			n = 4
		case t == rr.TypeNS:
			n = 3
		default:
			n = 2
		}
		// The last attempt counts. A truncated reply does not: the retry over TCP says more, if it gets a reply.
		switch {
		case e.Class == iterate.Truncated && rank == 0:
			best = e.Class
		case e.Class == iterate.Truncated, best == iterate.Truncated && e.Class.Transport():
		case n >= rank:
			best, rank = e.Class, n
		}
	}
	return best
}

// addEvidence adds evidence to a probe. No wins over every other fact: a failure was observed.
func addEvidence(p *explain.Probe, f explain.Fact, detail string, id int) {
	if p.Fact == explain.No && f != explain.No {
		return
	}
	if p.Fact != f {
		*p = explain.Probe{Fact: f, Detail: detail}
	}
	p.Evidence = append(p.Evidence, id)
}

// tcp reports whether a server replies over TCP. One reply is enough.
func tcp(own []record) (p explain.Probe) {
	for _, e := range own {
		if e.Transport != resolve.TCP.String() || e.Class == iterate.Unknown {
			continue
		}
		if e.view != nil {
			return explain.Probe{Fact: explain.Yes, Evidence: []int{e.id}}
		}
		addEvidence(&p, explain.No, e.Error, e.id)
	}
	return p
}

// edns reports whether a server supports EDNS. One reply with EDNS is enough; silence proves nothing.
func edns(own []record) (p explain.Probe) {
	for _, e := range own {
		switch {
		case !e.EDNS || e.view == nil:
		case e.view.EDNS:
			return explain.Probe{Fact: explain.Yes, Evidence: []int{e.id}}
		case slices.Contains([]iterate.Class{iterate.LameServfail, iterate.LameRefused, iterate.LameNotAuth}, e.Class):
			// The server does not answer at all, so the reply says nothing about EDNS.
		default:
			addEvidence(&p, explain.No, e.view.Rcode, e.id)
		}
	}
	return p
}

// echoes reports whether a server echoes the case of the name in the question. The root name has no letters.
func echoes(own []record) (p explain.Probe) {
	for _, e := range own {
		switch {
		case e.view == nil || e.Question.Name.IsRoot() || e.Class == iterate.FormErr:
		case e.view.Case:
			if len(p.Evidence) == 0 {
				addEvidence(&p, explain.Yes, "", e.id)
			}
		default:
			addEvidence(&p, explain.No, "", e.id)
		}
	}
	return p
}

// truncation reports whether a server observes the UDP size of the query.
func truncation(own []record) (p explain.Probe) {
	for i, e := range own {
		switch {
		case e.Transport != resolve.UDP.String():
		case e.view != nil && e.view.Size > wire.UDPSize && e.EDNS:
			addEvidence(&p, explain.No, fmt.Sprintf("%d bytes", e.view.Size), e.id)
		case e.Class != iterate.Truncated:
		case slices.ContainsFunc(own[i:], func(f record) bool { return sameOverTCP(e, f) && f.view != nil }):
			addEvidence(&p, explain.Yes, "", e.id)
		case slices.ContainsFunc(own[i:], func(f record) bool { return sameOverTCP(e, f) && f.Class != iterate.Unknown }):
			addEvidence(&p, explain.No, "truncated, and no reply over TCP", e.id)
		}
	}
	return p
}

func sameOverTCP(e, f record) bool {
	return f.Question == e.Question && f.Transport == resolve.TCP.String()
}

// limits reports whether a server truncated replies that would have fit. Servers with response rate limiting do this:
// a client that retries over TCP proves that its address is not spoofed.
func limits(own []record) (p explain.Probe) {
	for i, e := range own {
		if e.Class != iterate.Truncated || e.Transport != resolve.UDP.String() {
			continue
		}
		for _, f := range own[i:] {
			// 512 bytes fit into every UDP reply (RFC 1035 §4.2.1), so the size was not the reason.
			if sameOverTCP(e, f) && f.view != nil && f.view.Size <= 512 {
				addEvidence(&p, explain.Yes, "", e.id)
			}
		}
	}
	return p
}

// negativeSOA reports whether the denials of a server contain the SOA record (RFC 2308 §3), without which resolvers do
// not cache them (§5).
func negativeSOA(zone dnsname.Name, own []record) (p explain.Probe) {
	for _, e := range own {
		switch {
		case e.Zone != zone:
		case e.Class == iterate.NoSOA:
			addEvidence(&p, explain.No, e.Question.String(), e.id)
		case e.Class == iterate.NXDomain || e.Class == iterate.NoData:
			addEvidence(&p, explain.Yes, "", e.id)
		}
	}
	return p
}

// askPlanned asks the planned nameservers for the SOA of the zone.
func (r *run) askPlanned() {
	var qs []iterate.Query
	for _, n := range r.opts.PlanNS {
		for _, a := range r.lookupHost(n).addrs {
			r.plans = append(r.plans, plannedServer{n, a})
			qs = append(qs, newQuery(r.facts.Zone, a, r.facts.Zone, rr.TypeSOA))
		}
	}
	r.askAll(qs)
}

// plannedServer is an address of a planned nameserver.
type plannedServer struct {
	host dnsname.Name
	addr netip.Addr
}

// findPrimary looks up the primary server that the SOA names, unless it is one of the zone's servers.
func (r *run) findPrimary() {
	servers := r.serversOf(r.records())
	i := slices.IndexFunc(servers, func(s explain.Server) bool { return s.Zone == r.facts.Zone && s.SOA != nil })
	if i < 0 {
		return
	}
	soa, z := servers[i].SOA, r.zoneAt(r.facts.Zone)
	if slices.ContainsFunc(z.Hosts, func(h iterate.Host) bool { return h.Name == soa.MName }) {
		return
	}
	f := r.lookupHost(soa.MName)
	p := &explain.Primary{Name: soa.MName, Addrs: f.addrs, Alias: f.alias, Missing: f.missing, Class: iterate.Unknown,
		Evidence: f.ids}
	if len(f.addrs) > 0 {
		reply := r.ask(newQuery(z.Name, f.addrs[0], z.Name, rr.TypeSOA))
		p.Class = reply.class()
		p.Evidence = append(p.Evidence, reply.ids...)
	}
	r.facts.Primary = p
}

// host is the result of looking up the addresses of a host.
type host struct {
	addrs   []netip.Addr
	alias   bool
	missing bool
	ids     []int
}

// lookupHost looks up the addresses of a host with as few queries as possible.
func (r *run) lookupHost(name dnsname.Name) (out host) {
	if name.IsRoot() {
		return host{missing: true}
	}
	for _, t := range addresses {
		var class iterate.Class
		if good := r.usableServers(r.zoneOf(name)); len(good) > 0 && name.IsIn(r.facts.Zone) {
			class = r.lookupInZone(iterate.Question{Name: name, Type: t}, good[0], &out)
		} else {
			class = r.lookupFromRoot(iterate.Question{Name: name, Type: t}, &out)
		}
		out.missing = class == iterate.NXDomain || class == iterate.NoData
		if class != iterate.NoData {
			break
		}
	}
	return out
}

// lookupQueries and lookupTimeout limit the lookup of one host: the facts about it are of minor importance.
const (
	lookupQueries = 12
	lookupTimeout = 5 * time.Second
)

// lookupFromRoot looks up a host by iterating from the root.
func (r *run) lookupFromRoot(q iterate.Question, out *host) iterate.Class {
	queries := min(lookupQueries, r.budget.Left())
	if queries == 0 {
		r.addUnsent()
		return iterate.Unknown
	}
	it := iterate.Iterator{Exchanger: r.Exchanger,
		Options: iterate.Options{Hints: r.Hints, Probe: r.probeLabel, Fast: true, NoDNSSEC: true, RootAddrs: 1,
			Family: r.opts.family(), Budget: r.budget.Part(queries), MaxTime: lookupTimeout, Timeouts: r.opts.Timeouts[:1]}}
	trace, err := it.Run(r.ctx, q)
	if err != nil {
		return iterate.Unknown
	}
	before := len(r.exchanges)
	r.addTrace(trace)
	for i := before; i < len(r.exchanges); i++ {
		e := r.exchanges[i]
		if v, err := e.View(); err == nil && e.Question.Name == q.Name && e.Class == iterate.Answer {
			out.addrs = append(out.addrs, addressesOf(v.Answer)...)
			out.ids = append(out.ids, i)
		}
	}
	out.alias = out.alias || len(trace.Chain) > 0
	return trace.Result
}

// lookupInZone asks a server of the zone that contains the host. One usable server is enough: differences between the
// servers of the zone are the subject of other checks.
func (r *run) lookupInZone(q iterate.Question, server netip.Addr, out *host) iterate.Class {
	p := r.ask(newQuery(r.facts.Zone, server, q.Name, q.Type))
	out.ids = append(out.ids, p.ids...)
	if p.view != nil && p.class() == iterate.Answer {
		out.addrs = addressesOf(p.view.Answer)
		_, out.alias = targetOf(p.view.Answer, q.Name)
	}
	return p.class()
}

func addressesOf(section []iterate.Record) (out []netip.Addr) {
	for _, rec := range section {
		if a, ok := netip.AddrFromSlice([]byte(rec.Data)); ok && (rec.Type == rr.TypeA || rec.Type == rr.TypeAAAA) &&
			!slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}
