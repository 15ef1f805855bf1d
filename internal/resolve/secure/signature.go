package secure

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// sigKey identifies a signature with the records that it signs. A server with outdated records may send the same
// signature with other records.
type sigKey struct {
	owner dnsname.Name
	sig   dns.RRSIG
	data  string
}

func (s *set) key(sig *dns.RRSIG) sigKey {
	k := sigKey{owner: s.owner, sig: *sig, data: s.content()}
	k.sig.Hdr = dns.RR_Header{}
	return k
}

// content returns the data of a set in canonical order.
func (s *set) content() string {
	if s.joined != "" {
		return s.joined
	}
	var data []string
	for _, rec := range s.records {
		if d, err := rr.FromRR(rec); err == nil {
			data = append(data, d)
		}
	}
	s.joined = "\x00" + strings.Join(rr.Normal(rr.Type(s.typ), data), "\x00")
	return s.joined
}

// judgeSignatures judges each signature on its own. The result helps operators of the zone to find faults.
func (v *validation) judgeSignatures() {
	seen := map[sigKey]int{}
	for _, r := range v.replies {
		for _, s := range slices.Concat(r.answer, r.authority) {
			for _, sig := range s.sigs {
				v.showSignature(r.server, s, sig, seen)
			}
		}
	}
}

// showSignature adds a signature to the result of the zone that made it. A valid one also shows what its key is used
// for.
func (v *validation) showSignature(from netip.Addr, s *set, sig *dns.RRSIG, seen map[sigKey]int) {
	signer, err := dnsname.Parse(sig.SignerName)
	z := v.zones[signer]
	if err != nil || z == nil || len(z.keys) == 0 || len(s.records) == 0 {
		return
	}
	k := s.key(sig)
	if i, ok := seen[k]; ok {
		z.shown.Signatures[i].From = iterate.Union(z.shown.Signatures[i].From, []netip.Addr{from})
		return
	}
	if len(z.shown.Signatures) >= maxShown {
		return
	}
	seen[k] = len(z.shown.Signatures)
	j := v.judge(z, z.keys, s, sig)
	z.shown.Signatures = append(z.shown.Signatures, Signature{Owner: s.owner, Type: rr.Type(s.typ).String(),
		KeyTag: sig.KeyTag, Algorithm: sig.Algorithm, Inception: v.sigTime(sig.Inception),
		Expiration: v.sigTime(sig.Expiration), Valid: j.ok(), Cause: j.cause, Problem: j.why, From: []netip.Addr{from}})
	if !j.ok() {
		return
	}
	for i := range z.shown.Keys {
		if key := &z.shown.Keys[i]; key.KeyTag == sig.KeyTag && key.Algorithm == sig.Algorithm {
			key.SignsKeys = key.SignsKeys || s.typ == dns.TypeDNSKEY
			key.SignsZone = key.SignsZone || s.typ != dns.TypeDNSKEY
		}
	}
}

// expires returns when the first set that the answer needs has no valid signature left at some server.
func (v *validation) expires() (first time.Time, of string) {
	type at struct {
		set    string
		server netip.Addr
	}
	last := map[at]time.Time{}
	for _, z := range v.order {
		for _, s := range z.shown.Signatures {
			if !s.Valid || !v.needs(s) {
				continue
			}
			for _, a := range s.From {
				k := at{s.Owner.String() + " " + s.Type, a}
				if s.Expiration.After(last[k]) {
					last[k] = s.Expiration
				}
			}
		}
	}
	for k, end := range last {
		if first.IsZero() || end.Before(first) || end.Equal(first) && k.set < of {
			first, of = end, k.set
		}
	}
	return first, of
}

// needs reports whether the answer depends on a signature: of keys, of DS records, of its own records, or of a
// denial.
func (v *validation) needs(s Signature) bool {
	switch s.Type {
	case "DNSKEY", "DS":
		return true
	}
	return slices.ContainsFunc(v.answers, func(a Answer) bool {
		switch s.Type {
		case "SOA", "NSEC", "NSEC3":
			return a.Class != iterate.Answer && s.Owner.IsIn(a.Zone)
		case "DNAME":
			return a.Question.Name.IsIn(s.Owner)
		case "CNAME", a.Question.Type.String():
			return s.Owner == a.Question.Name
		}
		return false
	})
}
