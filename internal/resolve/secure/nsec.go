package secure

import (
	"slices"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// nsecs are the NSEC records of one reply.
type nsecs struct{ records []nsec }

// nsec is an NSEC record: no name exists between owner and next (RFC 4034 §4).
type nsec struct {
	owner, next dnsname.Name
	types       []uint16
}

// add ignores records that leave the zone: a signer could use them to deny names of other zones.
func (n *nsecs) add(zone, owner dnsname.Name, rec *dns.NSEC) {
	next, err := dnsname.Parse(rec.NextDomain)
	if err == nil && owner.IsIn(zone) && next.IsIn(zone) {
		n.records = append(n.records, nsec{owner, next, rec.TypeBitMap})
	}
}

// covers reports whether a name is between owner and next. The last record of a zone points back to the apex.
func (n nsec) covers(name dnsname.Name) bool {
	if name.Compare(n.owner) <= 0 || name.IsIn(n.owner) && leadsAway(n.types) {
		return false
	}
	return name.Compare(n.next) < 0 || n.next.Compare(n.owner) <= 0
}

// at returns the record whose owner is the name: it lists the types that exist there.
func (n *nsecs) at(name dnsname.Name) (nsec, bool) {
	return find(n.records, func(r nsec) bool { return r.owner == name })
}

func (n *nsecs) covering(name dnsname.Name) (nsec, bool) {
	return find(n.records, func(r nsec) bool { return r.covers(name) })
}

// find returns the first record for which is returns true.
func find[T any](records []T, is func(T) bool) (found T, ok bool) {
	i := slices.IndexFunc(records, is)
	if i < 0 {
		return found, false
	}
	return records[i], true
}

// encloser returns the closest encloser of a name that n covers: its nearest existing ancestor.
func (n nsec) encloser(name dnsname.Name) dnsname.Name {
	a := name.Parent()
	for !a.IsRoot() && !n.owner.IsIn(a) && !n.next.IsIn(a) {
		a = a.Parent()
	}
	return a
}

// noData implements prover. A name without a record may be an empty non-terminal, or a wildcard may match it.
func (n *nsecs) noData(name dnsname.Name, typ uint16) judgement {
	if at, ok := n.at(name); ok {
		return lacksType(at.types, name, typ)
	}
	c, ok := n.covering(name)
	switch {
	case !ok:
		return bad(BadDenial, "no NSEC record matches or covers %s", name)
	case c.next.IsIn(name): // names below it exist, so it is an empty non-terminal
		return good
	}
	w := wildcardOf(c.encloser(name))
	at, ok := n.at(w)
	if !ok {
		return bad(BadDenial, "the NSEC records say that %s does not exist, the reply says that it does", name)
	}
	return lacksType(at.types, w, typ)
}

func (n *nsecs) noName(name dnsname.Name) judgement {
	if _, ok := n.at(name); ok {
		return bad(BadDenial, "the NSEC records say that %s exists, the reply says that it does not", name)
	}
	c, ok := n.covering(name)
	switch {
	case !ok:
		return bad(BadDenial, "no NSEC record denies %s", name)
	case c.next.IsIn(name):
		return bad(BadDenial, "the NSEC records say that there are names below %s, "+
			"the reply says that it does not exist", name)
	}
	w := wildcardOf(c.encloser(name))
	if _, ok := n.covering(w); !ok && !w.IsZero() {
		return bad(BadDenial, "no NSEC record denies the wildcard %s", w)
	}
	return good
}

func (n *nsecs) noCloser(name dnsname.Name, labels int) judgement {
	c, ok := n.covering(name)
	if !ok || c.encloser(name).NumLabels() != labels || c.next.IsIn(name) {
		return bad(BadDenial, "%s comes from a wildcard, and no NSEC record proves that no closer name exists", name)
	}
	return good
}

func (n *nsecs) delegates(name dnsname.Name) bool {
	at, ok := n.at(name)
	return ok && slices.Contains(at.types, uint16(rr.TypeNS))
}
