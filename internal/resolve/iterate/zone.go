package iterate

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// zone is a zone on the way.
type zone struct {
	name     dnsname.Name
	parent   *zone
	hidden   bool
	entered  bool // its servers are known
	locating bool // its servers are being looked up
	surveyed bool // its servers were asked for its NS records
	full     bool // and what they say of the zone
	parentNS []NSSet
	childNS  []NSSet
	hosts    map[dnsname.Name]*host
}

type host struct {
	glue, own []netip.Addr
	problem   string
}

// found is what came of looking up the name of a server.
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

// names are the names of the servers in canonical order: maps have none, and a trace needs one.
func (z *zone) names() []dnsname.Name {
	return slices.SortedFunc(maps.Keys(z.hosts), dnsname.Name.Compare)
}

// addrs are the addresses of a zone's servers that are asked.
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

// add makes a zone known.
func (r *run) add(z *zone) *zone {
	r.zones[z.name] = z
	r.order = append(r.order, z)
	return z
}

// refer is the zone at a cut as referrals to it describe it.
func (r *run) refer(parent *zone, cut dnsname.Name, replies []verdict) *zone {
	z := r.zones[cut]
	if z == nil {
		z = r.add(&zone{name: cut, parent: parent, hosts: map[dnsname.Name]*host{}})
	}
	before := len(z.hosts)
	for _, v := range replies {
		z.parentNS = addSet(z.parentNS, v.server, cut, v.reply.Ns)
		for _, ns := range targets(cut, v.reply.Ns) {
			h := z.host(ns)
			// What the parent has no authority over, it cannot know (RFC 2181 §5.4.1).
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

// hide is a zone below another on the same servers.
func (r *run) hide(parent *zone, cut dnsname.Name) *zone {
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

// enter finds the addresses of a zone's servers, and if it is to be looked at in full, asks them about the zone.
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
	for range 2 { // servers that only the child lists are asked, too
		news := r.learn(z, ask(z, r.addrs(z), ns))
		z.surveyed = true
		if !news {
			break
		}
		r.locate(z)
	}
	before := len(r.addrs(z))
	r.confirm(z)
	if len(r.addrs(z)) > before { // glue was old
		r.learn(z, ask(z, r.addrs(z), ns))
	}
	r.inspect(z)
}

// thorough reports whether all servers of a zone are asked about the zone itself, and not only about what is below it. The
// root and the top-level domains have so many that they would use up the budget, and nobody who asks can mend them.
func (r *run) thorough(z *zone) bool {
	return !r.opts.Fast && (z.name.NumLabels() > 1 || z.name == r.q.Name)
}

// learn takes in the NS sets of the child, and reports whether they name servers that the parent does not.
func (r *run) learn(z *zone, replies []verdict) (news bool) {
	for _, v := range replies {
		if v.class != Answer {
			continue
		}
		z.childNS = addSet(z.childNS, v.server, z.name, v.reply.Answer)
		for _, ns := range targets(z.name, v.reply.Answer) {
			news = news || z.hosts[ns] == nil
			h := z.host(ns)
			if z.name.IsRoot() { // priming: the hints may be old (RFC 9609 §3.3)
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

// confirm asks the zone for the addresses of its servers in it, to compare with glue.
func (r *run) confirm(z *zone) {
	if !r.thorough(z) || z.name.IsRoot() {
		return
	}
	for i, name := range z.names() {
		if h := z.hosts[name]; i < maxServers && name.IsIn(z.name) && len(h.own) == 0 && h.problem == "" {
			h.own = r.addressesIn(z, name)
		}
	}
}

// addressesIn asks servers of a zone for the addresses of a name in it.
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

// inspect asks servers that reply for what checks of the zone need. Nothing waits for it. SOA is asked over TCP as well: it
// is small, so that only TCP itself can be what fails.
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

// lookup finds the addresses of a server's name from the root.
func (r *run) lookup(z *zone, name dnsname.Name) found {
	if f, ok := r.way.hosts[name]; ok {
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
		r.way.hosts[name] = f // what failed because of where we came from may succeed from elsewhere
	}
	return f
}

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

// Union returns the addresses of both lists, each once, in order.
func Union(a, b []netip.Addr) []netip.Addr {
	out := slices.Concat(a, b)
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
