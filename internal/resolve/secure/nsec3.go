package secure

import (
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// maxIterations is the number of NSEC3 iterations above which a zone counts as insecure. RFC 9276 §3.2 does not
// define a number; current resolvers use 50 to 150.
const maxIterations = 100

// nsec3s are the NSEC3 records of one reply. All have the same parameters.
type nsec3s struct {
	zone       dnsname.Name
	iterations uint16
	salt       string
	records    []nsec3
	memo       map[hashKey]string
}

type hashKey struct {
	name       dnsname.Name
	iterations uint16
	salt       string
}

// nsec3 is an NSEC3 record: no name has a hash between hash and next (RFC 5155 §3).
type nsec3 struct {
	hash, next string
	optOut     bool
	types      []uint16
}

func (n *nsec3s) add(owner dnsname.Name, rec *dns.NSEC3) {
	if owner.IsRoot() || owner.Parent() != n.zone || rec.Hash != dns.SHA1 || rec.Flags&^1 != 0 {
		return // other records must be ignored (RFC 5155 §8.1 and §8.2)
	}
	salt := strings.ToUpper(rec.Salt)
	if len(n.records) > 0 && (rec.Iterations != n.iterations || salt != n.salt) {
		return
	}
	n.iterations, n.salt = rec.Iterations, salt
	n.records = append(n.records, nsec3{strings.ToUpper(owner.Label()), strings.ToUpper(rec.NextDomain),
		rec.Flags&1 == 1, rec.TypeBitMap})
}

// hash returns the NSEC3 hash of a name. It caches hashes, because many records need the same ones.
func (n *nsec3s) hash(name dnsname.Name) string {
	k := hashKey{name, n.iterations, n.salt}
	if h, ok := n.memo[k]; ok {
		return h
	}
	h := strings.ToUpper(dns.HashName(name.String(), dns.SHA1, n.iterations, n.salt))
	n.memo[k] = h
	return h
}

func (n *nsec3s) at(name dnsname.Name) (nsec3, bool) {
	h := n.hash(name)
	return find(n.records, func(r nsec3) bool { return r.hash == h })
}

func (n *nsec3s) covering(name dnsname.Name) (nsec3, bool) {
	h := n.hash(name)
	return find(n.records, func(r nsec3) bool {
		if r.hash < r.next {
			return r.hash < h && h < r.next
		}
		return r.hash < h || h < r.next // the last record points back to the first
	})
}

// encloser proves the closest encloser of a name (RFC 5155 §8.3). It also returns the record that denies the next
// name on the path down.
func (n *nsec3s) encloser(name dnsname.Name) (encloser dnsname.Name, denies nsec3, ok bool) {
	for a := name; a != n.zone; {
		a = a.Parent()
		if a.IsZero() || !a.IsIn(n.zone) {
			break
		}
		at, there := n.at(a)
		if !there {
			continue
		}
		denies, ok = n.covering(childToward(a, name))
		return a, denies, ok && !leadsAway(at.types)
	}
	return dnsname.Name{}, nsec3{}, false
}

// noData implements prover (RFC 5155 §8.5 to §8.7).
func (n *nsec3s) noData(name dnsname.Name, typ uint16) judgement {
	if at, ok := n.at(name); ok {
		return lacksType(at.types, name, typ)
	}
	a, denies, ok := n.encloser(name)
	if !ok {
		return bad(BadDenial, "no NSEC3 record matches or covers %s", name)
	}
	w := wildcardOf(a)
	at, wild := n.at(w)
	if wild && !w.IsZero() {
		if j := lacksType(at.types, w, typ); !j.ok() {
			return j
		}
	}
	switch {
	case denies.optOut: // RFC 5155 §9.2
		return insecure(OptOut, "%s may exist without a signature because of NSEC3 opt-out", name)
	case wild && !w.IsZero():
		return good
	}
	return bad(BadDenial, "the NSEC3 records say that %s does not exist, the reply says that it does", name)
}

// noName implements prover (RFC 5155 §8.4).
func (n *nsec3s) noName(name dnsname.Name) judgement {
	if _, ok := n.at(name); ok {
		return bad(BadDenial, "the NSEC3 records say that %s exists, the reply says that it does not", name)
	}
	a, denies, ok := n.encloser(name)
	if !ok {
		return bad(BadDenial, "no NSEC3 record denies %s", name)
	}
	w := wildcardOf(a)
	switch _, ok := n.covering(w); {
	case !ok && !w.IsZero():
		return bad(BadDenial, "no NSEC3 record denies the wildcard %s", w)
	case denies.optOut:
		return insecure(OptOut, "%s may exist without a signature because of NSEC3 opt-out", name)
	}
	return good
}

// noCloser implements prover (RFC 5155 §8.8).
func (n *nsec3s) noCloser(name dnsname.Name, labels int) judgement {
	next := name
	for next.NumLabels() > labels+1 {
		next = next.Parent()
	}
	c, ok := n.covering(next)
	switch {
	case !ok || !next.IsIn(n.zone):
		return bad(BadDenial, "%s comes from a wildcard, and no NSEC3 record proves that no closer name exists", name)
	case c.optOut:
		return insecure(OptOut, "a name closer to %s than the wildcard may exist because of NSEC3 opt-out", name)
	}
	return good
}

func (n *nsec3s) delegates(name dnsname.Name) bool {
	at, ok := n.at(name)
	return ok && slices.Contains(at.types, dns.TypeNS)
}
