package secure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// childDS reads the DS records that a zone requests from its parent. The parent acts on them only if all servers have
// the same records (RFC 7344 §6.1), so the first reply to each question shows them.
func (v *validation) childDS(z *zone) {
	own := &z.shown.Child
	records := map[uint16][]dns.RR{}
	differ := ""
	var sets []*set
	for _, t := range []uint16{dns.TypeCDS, dns.TypeCDNSKEY} {
		first, asked := "", false
		for _, r := range v.replies {
			if r.zone != z.name || r.q.Name != z.name || uint16(r.q.Type) != t ||
				r.class != iterate.Answer && r.class != iterate.NoData {
				continue
			}
			own.Seen = true
			content, s := "", pick(r.answer, z.name, t)
			if s != nil {
				content = s.content()
			}
			switch {
			case !asked:
				if first, asked = content, true; s != nil {
					records[t], sets = s.records, append(sets, s)
				}
			case content != first:
				differ = fmt.Sprintf("the servers of %s have different %s records", z.name, rr.Type(t))
			}
		}
	}
	for _, rec := range slices.Concat(atMostKeys(records[dns.TypeCDS]), atMostKeys(records[dns.TypeCDNSKEY])) {
		z.addChildRecord(rec)
	}
	own.Problem = cmp.Or(differ, v.badlySigned(z, sets), z.disagreement())
	wanted := slices.DeleteFunc(slices.Clone(own.Records), func(w ChildRecord) bool {
		return w.AtParent || w.Algorithm == 0
	})
	own.Pending = len(wanted) > 0 || own.Delete && len(z.shown.DS) > 0
}

// badlySigned returns a description if the parent must not trust CDS or CDNSKEY records because of their signatures
// (RFC 7344 §4.1), or "".
func (v *validation) badlySigned(z *zone, sets []*set) string {
	for _, s := range sets {
		what := fmt.Sprintf("%s %s", z.name, rr.Type(s.typ))
		if len(z.keys) == 0 {
			return what + " is in a zone that is not signed"
		}
		if j, _ := v.verify(z, z.keys, s); !j.ok() && j.state == Bogus {
			return j.why
		}
		for _, w := range z.shown.Child.Records {
			if w.Type == rr.Type(s.typ).String() && w.Matches &&
				!slices.ContainsFunc(s.sigs, func(sig *dns.RRSIG) bool { return sig.KeyTag == w.KeyTag }) {
				return fmt.Sprintf("%s names key %d, which does not sign it", what, w.KeyTag)
			}
		}
	}
	return ""
}

// addChildRecord adds a CDS or CDNSKEY record. Algorithm 0 requests the removal of all DS records (RFC 8078 §4).
func (z *zone) addChildRecord(rec dns.RR) {
	var w ChildRecord
	switch rec := rec.(type) {
	case *dns.CDS:
		w = ChildRecord{Type: "CDS", KeyTag: rec.KeyTag, Algorithm: rec.Algorithm, DigestType: rec.DigestType,
			Matches: slices.ContainsFunc(z.keys, func(k *dns.DNSKEY) bool { return matches(&rec.DS, k) }),
			AtParent: slices.ContainsFunc(z.shown.DS, func(d DS) bool {
				return d.KeyTag == rec.KeyTag && d.Algorithm == rec.Algorithm && d.DigestType == rec.DigestType &&
					strings.EqualFold(d.Digest, rec.Digest)
			})}
	case *dns.CDNSKEY:
		key := rec.DNSKEY
		key.Hdr = dns.RR_Header{Name: z.name.String(), Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}
		w = ChildRecord{Type: "CDNSKEY", KeyTag: key.KeyTag(), Algorithm: rec.Algorithm,
			Matches: slices.ContainsFunc(z.keys, func(k *dns.DNSKEY) bool {
				return k.Flags == key.Flags && k.Algorithm == key.Algorithm && k.PublicKey == key.PublicKey
			}),
			AtParent: slices.ContainsFunc(z.shown.DS, func(d DS) bool {
				ds := &dns.DS{KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType, Digest: d.Digest}
				return matches(ds, &key)
			})}
	default:
		return
	}
	own := &z.shown.Child
	own.Delete = own.Delete || w.Algorithm == 0
	own.Records = append(own.Records, w)
}

// disagreement returns a description if the records contradict each other, or "". CDS and CDNSKEY records must be for
// the same keys (RFC 7344 §4), and the zone must have at least one of these keys.
func (z *zone) disagreement() string {
	own := z.shown.Child
	tags := map[string][]uint16{}
	fits := false
	for _, w := range own.Records {
		if w.Algorithm == 0 {
			w.KeyTag = 0
		}
		tags[w.Type] = append(tags[w.Type], w.KeyTag)
		fits = fits || w.Matches
	}
	for t := range tags {
		slices.Sort(tags[t])
		tags[t] = slices.Compact(tags[t])
	}
	cds, cdnskey := tags["CDS"], tags["CDNSKEY"]
	switch {
	case len(own.Records) == 0:
		return ""
	case len(cds) > 0 && len(cdnskey) > 0 && !slices.Equal(cds, cdnskey):
		return fmt.Sprintf("CDS is for the keys %v, CDNSKEY for %v", cds, cdnskey)
	case own.Delete && fits:
		return "some CDS or CDNSKEY records request DS records, others their removal"
	case !own.Delete && !fits:
		return fmt.Sprintf("the CDS and CDNSKEY records of %s match none of its keys", z.name)
	}
	return ""
}
