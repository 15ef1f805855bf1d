package iterate

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// zone is a zone on the path.
type zone struct {
	name     dnsname.Name
	parent   *zone
	hidden   bool
	entered  bool // the addresses of its servers are known
	locating bool // the addresses of its servers are being looked up
	surveyed bool // its servers were queried for its NS records
	full     bool // its servers were also queried for the data that checks need
	parentNS []NSSet
	childNS  []NSSet
	hosts    map[dnsname.Name]*host
}

type host struct {
	glue, own []netip.Addr
	problem   string
}

// found is the result of looking up the name of a server.
type found struct {
	addrs   []netip.Addr
	problem string
}

func (z *zone) host(name dnsname.Name) *host {
	if z.hosts[name] == nil {
		z.hosts[name] = &host{}
	}
	return z.hosts[name]
}

// names returns the names of the servers in canonical order, so that traces are reproducible.
func (z *zone) names() []dnsname.Name {
	return slices.SortedFunc(maps.Keys(z.hosts), dnsname.Name.Compare)
}

// addrs returns the addresses of a zone's servers that may be queried.
func (r *run) addrs(z *zone) (out []netip.Addr) {
	names := z.names()
	for _, n := range names[:min(maxServers, len(names))] {
		h := z.hosts[n]
		for _, a := range slices.Concat(h.glue, h.own) {
			if !slices.Contains(out, a) && r.opts.Family.has(a) {
				out = append(out, a)
			}
		}
	}
	if z.name.IsRoot() && r.opts.RootAddrs > 0 {
		out = out[:min(r.opts.RootAddrs, len(out))]
	}
	return out
}

// add registers a zone.
func (r *run) add(z *zone) *zone {
	r.zones[z.name] = z
	r.order = append(r.order, z)
	return z
}

// referredZone returns the zone at a cut, with the NS sets and the glue of the referrals to it.
func (r *run) referredZone(parent *zone, cut dnsname.Name, replies []verdict) *zone {
	z := r.zones[cut]
	if z == nil {
		z = r.add(&zone{name: cut, parent: parent, hosts: map[dnsname.Name]*host{}})
	}
	before := len(z.hosts)
	for _, v := range replies {
		z.parentNS = addSet(z.parentNS, v.server, cut, v.reply.Ns)
		for _, ns := range targets(cut, v.reply.Ns) {
			h := z.host(ns)
			// Use glue only for names in the parent: it has no authority over others (RFC 2181 §5.4.1).
			if ns.IsIn(parent.name) {
				h.glue = Union(h.glue, addresses(ns, v.reply.Extra))
			}
		}
	}
	if len(z.hosts) > before {
		z.entered, z.full = false, false
	}
	if len(z.parentNS) > 1 {
		r.note(NoteDiffer, parent.name, cut.String())
	}
	return z
}

// hiddenZone returns a zone below another zone on the same servers.
func (r *run) hiddenZone(parent *zone, cut dnsname.Name) *zone {
	if z := r.zones[cut]; z != nil {
		return z
	}
	z := r.add(&zone{name: cut, parent: parent, hidden: true, hosts: map[dnsname.Name]*host{}})
	for n, h := range parent.hosts {
		c := *h
		z.hosts[n] = &c
	}
	return z
}

// enter finds the addresses of a zone's servers. If full is set, it also queries them about the zone.
func (r *run) enter(z *zone, full bool) {
	if !z.entered {
		z.entered = true
		r.locate(z)
	}
	if !full || z.full {
		return
	}
	z.full = true
	ns := Question{z.name, rr.Type(dns.TypeNS)}
	ask := r.ask
	if !r.thorough(z) {
		ask = r.askOne
	}
	for range 2 { // the second round queries servers that only the child lists
		news := r.learnChildNS(z, ask(z, r.addrs(z), ns))
		z.surveyed = true
		if !news {
			break
		}
		r.locate(z)
	}
	before := len(r.addrs(z))
	r.confirmGlue(z)
	if len(r.addrs(z)) > before { // the glue was outdated
		r.learnChildNS(z, ask(z, r.addrs(z), ns))
	}
	r.inspect(z)
}

// thorough reports whether all servers of a zone are queried about the zone itself, and not only about names below
// it. The root and the top-level domains have so many servers that they would use up the budget. The user could not
// repair them anyway.
func (r *run) thorough(z *zone) bool {
	return !r.opts.Fast && (z.name.NumLabels() > 1 || z.name == r.q.Name)
}

// learnChildNS records the NS sets of the child. It reports whether they have servers that the parent does not list.
func (r *run) learnChildNS(z *zone, replies []verdict) (news bool) {
	for _, v := range replies {
		if v.class != Answer {
			continue
		}
		z.childNS = addSet(z.childNS, v.server, z.name, v.reply.Answer)
		for _, ns := range targets(z.name, v.reply.Answer) {
			news = news || z.hosts[ns] == nil
			h := z.host(ns)
			if z.name.IsRoot() { // priming: the hints may be outdated (RFC 9609 §3.3)
				h.own = Union(h.own, addresses(ns, v.reply.Extra))
			}
		}
	}
	return news
}

// locate finds addresses for the servers that have none.
func (r *run) locate(z *zone) {
	z.locating = true
	defer func() { z.locating = false }()
	for i, name := range z.names() {
		h := z.hosts[name]
		if i >= maxServers || len(h.glue)+len(h.own) > 0 || h.problem != "" || r.opts.Fast && len(r.addrs(z)) > 0 {
			continue
		}
		switch {
		case !name.IsIn(z.name):
			f := r.lookup(z, name)
			h.own, h.problem = f.addrs, f.problem
		case len(r.addrs(z)) > 0:
			h.own = r.addressesIn(z, name)
			fallthrough
		default:
			if len(h.own) == 0 {
				h.problem = "no glue"
			}
		}
	}
}

// confirmGlue queries the zone for the addresses of its servers that have names in it, to compare them with the glue.
func (r *run) confirmGlue(z *zone) {
	if !r.thorough(z) || z.name.IsRoot() {
		return
	}
	for i, name := range z.names() {
		if h := z.hosts[name]; i < maxServers && name.IsIn(z.name) && len(h.own) == 0 && h.problem == "" {
			h.own = r.addressesIn(z, name)
		}
	}
}

// addressesIn queries servers of a zone for the addresses of a name in it.
func (r *run) addressesIn(z *zone, name dnsname.Name) (out []netip.Addr) {
	for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
		for _, v := range r.askOne(z, r.addrs(z), Question{name, rr.Type(t)}) {
			if v.class == Answer {
				out = Union(out, addresses(name, v.reply.Answer))
			}
		}
	}
	return out
}

// inspect queries the responding servers for the data that checks of the zone need. The walk does not wait for the
// replies. SOA is also queried over TCP: the reply is small, so a failure means that TCP itself fails.
func (r *run) inspect(z *zone) {
	servers := r.addrs(z)
	keys := Question{z.name, rr.Type(dns.TypeDNSKEY)}
	if !r.thorough(z) || z.name.IsRoot() {
		if !r.opts.NoDNSSEC {
			r.askOne(z, servers, keys)
		}
		return
	}
	for _, s := range servers {
		ns, ok := r.asked[askKey{s, Question{z.name, rr.Type(dns.TypeNS)}}]
		if !ok || !ns.isDone() || r.judge(z, ns).reply == nil {
			continue
		}
		r.start(job{zone: z.name, server: s, q: Question{z.name, rr.Type(dns.TypeSOA)}, tcp: true})
		if !r.opts.NoDNSSEC {
			r.start(job{zone: z.name, server: s, q: keys})
		}
	}
}

// lookup finds the addresses of a server name, starting at the root.
func (r *run) lookup(z *zone, name dnsname.Name) found {
	if f, ok := r.passState.hosts[name]; ok {
		return f
	}
	if slices.Contains(r.looking, name) {
		r.note(NoteNSLoop, z.name, name.String())
		return found{problem: "loop"}
	}
	if r.count++; r.count > maxLookups {
		r.limits["lookups of servers"] = true
		return found{problem: "not looked up"}
	}
	r.looking = append(r.looking, name)
	f := r.find(name)
	r.looking = r.looking[:len(r.looking)-1]
	if f.problem != "loop" || len(r.looking) == 0 {
		r.passState.hosts[name] = f // not cached after a loop: the same name may succeed from another zone
	}
	return f
}

// find walks to the A and AAAA records of a server name.
func (r *run) find(name dnsname.Name) (f found) {
	f.problem = "no address"
	for _, t := range []uint16{dns.TypeA, dns.TypeAAAA} {
		q := Question{name, rr.Type(t)}
		end := r.walk(r.deepest(q, false), q, 0, false)
		switch end.class {
		case NXDomain:
			return found{problem: "no such name"}
		case Unknown:
			f.problem = "could not be looked up"
		}
		for _, v := range end.replies {
			if v.class != Answer {
				continue
			}
			if _, alias := aliasOf(q, v.reply.Answer); alias {
				return found{problem: "is an alias"} // RFC 2181 §10.3
			}
			f.addrs = Union(f.addrs, addresses(name, v.reply.Answer))
		}
	}
	if len(f.addrs) > 0 {
		f.problem = ""
	}
	return f
}

// Union returns the addresses of both lists without duplicates, in order.
func Union(a, b []netip.Addr) []netip.Addr {
	out := slices.Concat(a, b)
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
