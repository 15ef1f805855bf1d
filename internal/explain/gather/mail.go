package gather

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/mailtext"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

const typeCAA = rr.Type(257)

// mailQueries limits the queries of askMail. Probes of one address of each server have priority.
const mailQueries = 40

// maxExchangers limits the mail exchangers that are looked up.
const maxExchangers = 8

// askMail looks up the records of mail and CAA of the zone, and what they refer to. It queries only nameservers.
func (r *run) askMail() {
	zone := r.zoneAt(r.facts.Zone)
	servers := r.leastAsked(r.usableServers(zone))
	if len(servers) == 0 {
		return
	}
	whole := r.budget
	r.budget = whole.Part(min(mailQueries, whole.Left()))
	defer r.endMail(whole, r.limitsSoFar())
	questions := []iterate.Question{{Name: zone.Name, Type: typeCAA}}
	below := []string{"_dmarc", "_mta-sts", "_smtp._tls"}
	for _, selector := range r.opts.DKIM {
		below = append(below, selector+"._domainkey")
	}
	for _, b := range below {
		if n, err := dnsname.Parse(b + "." + zone.Name.String()); err == nil {
			questions = append(questions, iterate.Question{Name: n, Type: rr.TypeTXT})
		}
	}
	var qs []iterate.Query
	for _, q := range questions {
		qs = append(qs, newQuery(zone.Name, servers[0], q.Name, q.Type))
	}
	r.askAll(qs) // at the same time; lookupMail finds the replies
	for _, q := range questions {
		r.lookupMail(q.Name, q.Type)
	}
	exchangers, texts := r.lookupMail(zone.Name, rr.TypeMX), r.lookupMail(zone.Name, rr.TypeTXT)
	for i, d := range exchangers.Data {
		if n, ok := mailtext.Exchanger(d); ok && !n.IsRoot() && i < maxExchangers {
			r.lookupAddress(n)
		}
	}
	r.lookupSenders(zone.Name, mailtext.Texts(texts.Data))
	r.reportStage(StageMail)
}

// limitsSoFar returns the limits that were reached before the current step.
func (r *run) limitsSoFar() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.limitsReached)
}

// endMail restores the budget, and names a limit of queries that askMail reached as its own.
func (r *run) endMail(whole *resolve.Budget, before map[string]bool) {
	part := r.budget
	r.budget = whole
	r.mu.Lock()
	defer r.mu.Unlock()
	for limit := range maps.Clone(r.limitsReached) {
		if !before[limit] && strings.HasSuffix(limit, " queries") {
			delete(r.limitsReached, limit)
			r.limitsReached[part.String()+" for mail records"] = true
		}
	}
}

// lookupSenders looks up the records that an SPF record includes, as far as the number of lookups depends on them. If
// it has more hosts than may be missing, they are looked up, too.
func (r *run) lookupSenders(zone dnsname.Name, texts []string) {
	texts = slices.DeleteFunc(texts, func(t string) bool { return !mailtext.IsSPF(t) })
	if len(texts) != 1 {
		return
	}
	record, err := mailtext.ParseSPF(texts[0])
	if err != nil {
		return
	}
	total := mailtext.Count(zone.String(), record, func(domain string) ([]string, error) {
		n, err := dnsname.Parse(domain)
		if err != nil {
			return nil, nil // such a name cannot exist
		}
		l := r.lookupMail(n, rr.TypeTXT)
		if !l.Result.Usable() {
			return nil, mailtext.ErrUnknown
		}
		return mailtext.Texts(l.Data), nil
	})
	hosts := mailtext.Hosts(total.Terms)
	if total.Lookups > mailtext.MaxLookups || len(hosts) <= mailtext.MaxVoid {
		return
	}
	for _, h := range hosts {
		if h.Type == rr.TypeMX {
			r.lookupMail(h.Name, h.Type)
			continue
		}
		r.lookupAddress(h.Name)
	}
}

// lookupAddress looks up whether a host has an address: AAAA only if it has no A.
func (r *run) lookupAddress(host dnsname.Name) {
	if r.lookupMail(host, rr.TypeA).Result == iterate.NoData {
		r.lookupMail(host, rr.TypeAAAA)
	}
}

// lookupMail looks up a record of mail.
func (r *run) lookupMail(name dnsname.Name, t rr.Type) explain.Lookup {
	return r.lookup(&r.facts.Mail, name, t)
}

// lookup adds the result of a question to a list of the facts, unless it is there, and returns it. Queries to servers
// of the zone come first; the answers of askApex are used again.
func (r *run) lookup(all *[]explain.Lookup, name dnsname.Name, t rr.Type) explain.Lookup {
	q := iterate.Question{Name: name, Type: t}
	for _, l := range *all {
		if l.Question == q {
			return l
		}
	}
	out := explain.Lookup{Question: q, Result: iterate.Unknown}
	next := name
	if zone, servers := r.knownZone(name); len(servers) > 0 {
		next = r.lookupAt(zone, servers, &out)
	}
	if !next.IsZero() {
		r.followToEnd(next, &out)
	}
	*all = append(*all, out)
	return out
}

// knownZone returns the lowest zone that contains a name and whose servers are known from earlier queries, so that
// most lookups need no walk from the root. Top-level domains are left out: they would only refer.
func (r *run) knownZone(name dnsname.Name) (zone dnsname.Name, servers []netip.Addr) {
	if z := r.zoneOf(name); z != nil && z.Name == r.facts.Zone {
		return z.Name, r.usableServers(z)
	}
	for _, e := range r.exchanges {
		if e.Zone.IsZero() || !name.IsIn(e.Zone) || !e.Class.Usable() || e.Class == iterate.Referral ||
			e.Zone.NumLabels() < max(2, zone.NumLabels()) {
			continue
		}
		if e.Zone != zone {
			zone, servers = e.Zone, nil
		}
		if !slices.Contains(servers, e.Server) {
			servers = append(servers, e.Server)
		}
	}
	return zone, servers
}

// lookupAt uses an earlier reply of a server of a zone, or asks up to two servers. It returns the name to continue with
// from the root, or the zero name.
func (r *run) lookupAt(zone dnsname.Name, servers []netip.Addr, out *explain.Lookup) dnsname.Name {
	left := 2
	for _, rec := range r.records() {
		if rec.Zone != zone || rec.Question != out.Question || rec.unusual || r.outdated(rec) {
			continue
		}
		if rec.Class.Usable() && rec.view != nil {
			return readLookup(out, rec.Exchange, rec.view.Answer, rec.id)
		}
		if i := slices.Index(servers, rec.Server); i >= 0 {
			servers = slices.Delete(slices.Clone(servers), i, i+1)
			left--
		}
	}
	for _, s := range servers[:max(0, min(left, len(servers)))] {
		p := r.ask(newQuery(zone, s, out.Question.Name, out.Question.Type))
		if p.class().Usable() && p.view != nil {
			return readLookup(out, p.last, p.view.Answer, p.ids...)
		}
	}
	if zone == r.facts.Zone { // the other servers are not better
		return dnsname.Name{}
	}
	return out.Question.Name
}

// readLookup reads a reply of a server of a zone, with the aliases in that zone. It returns the name to continue with
// outside the zone, or the zero name.
func readLookup(out *explain.Lookup, e iterate.Exchange, answer []iterate.Record, ids ...int) (next dnsname.Name) {
	out.Result, out.Evidence = e.Class, append(out.Evidence, ids...)
	name := e.Question.Name
	if e.Class == iterate.Referral { // the name is in a zone below
		return name
	}
	for range maxSets {
		target, ok := targetOf(answer, name)
		if !ok {
			break
		}
		if out.Alias.IsZero() {
			out.Alias = target
		}
		if name = target; !name.IsIn(e.Zone) {
			return name
		}
	}
	if found := iterate.Records(answer, name, out.Question.Type); len(found) > 0 {
		set := setOf(found)
		out.Data, out.TTL = set.Data, set.TTL
	} else if name != e.Question.Name && out.Result == iterate.Answer {
		out.Result = iterate.NoData // an alias, and no records at its target
	}
	return dnsname.Name{}
}

// followToEnd looks up a name from the root, with at most lookupQueries queries.
func (r *run) followToEnd(name dnsname.Name, out *explain.Lookup) {
	q := iterate.Question{Name: name, Type: out.Question.Type}
	before := len(r.exchanges)
	result := r.lookupFromRoot(q, &host{})
	for i := before; i < len(r.exchanges); i++ {
		e := r.exchanges[i]
		v, err := e.View()
		if err != nil || e.Question != q || !e.Class.Usable() || e.Class == iterate.Referral {
			continue
		}
		if next := readLookup(out, e, v.Answer, i); !next.IsZero() {
			q.Name = next
		}
	}
	out.Result = result
}
