package secure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// childDS reads what a zone wants its parent to have for DS. Only the first reply to each question counts: servers that differ
// have different zones, which others find.
func (v *validation) childDS(z *zone) {
	own := &z.shown.Child
	records := map[uint16][]dns.RR{}
	for _, t := range []uint16{dns.TypeCDS, dns.TypeCDNSKEY} {
		for _, r := range v.replies {
			if r.zone == z.name && r.q.Name == z.name && uint16(r.q.Type) == t && (r.class == iterate.Answer || r.class == iterate.NoData) {
				own.Seen = true
				if s := pick(r.answer, z.name, t); s != nil {
					records[t] = s.records
				}
				break
			}
		}
	}
	for _, rec := range slices.Concat(some(records[dns.TypeCDS]), some(records[dns.TypeCDNSKEY])) {
		z.wish(rec)
	}
	own.Problem = z.disagreement()
	wanted := slices.DeleteFunc(slices.Clone(own.Records), func(w Wish) bool { return w.AtParent || w.Algorithm == 0 })
	own.Pending = len(wanted) > 0 || own.Delete && len(z.shown.DS) > 0
}

// wish takes in one record. Algorithm 0 asks for no DS at all (RFC 8078 §4).
func (z *zone) wish(rec dns.RR) {
	var w Wish
	switch rec := rec.(type) {
	case *dns.CDS:
		w = Wish{Type: "CDS", KeyTag: rec.KeyTag, Algorithm: rec.Algorithm, DigestType: rec.DigestType,
			Matches: slices.ContainsFunc(z.keys, func(k *dns.DNSKEY) bool { return matches(&rec.DS, k) }),
			AtParent: slices.ContainsFunc(z.shown.DS, func(d DS) bool {
				return d.KeyTag == rec.KeyTag && d.Algorithm == rec.Algorithm && d.DigestType == rec.DigestType && strings.EqualFold(d.Digest, rec.Digest)
			})}
	case *dns.CDNSKEY:
		key := rec.DNSKEY
		key.Hdr = dns.RR_Header{Name: z.name.String(), Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET}
		w = Wish{Type: "CDNSKEY", KeyTag: key.KeyTag(), Algorithm: rec.Algorithm,
			Matches: slices.ContainsFunc(z.keys, func(k *dns.DNSKEY) bool {
				return k.Flags == key.Flags && k.Algorithm == key.Algorithm && k.PublicKey == key.PublicKey
			}),
			AtParent: slices.ContainsFunc(z.shown.DS, func(d DS) bool {
				return matches(&dns.DS{KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType, Digest: d.Digest}, &key)
			})}
	default:
		return
	}
	own := &z.shown.Child
	own.Delete = own.Delete || w.Algorithm == 0
	own.Records = append(own.Records, w)
}

// disagreement is what is wrong with the records together: both kinds must be for the same keys (RFC 7344 §4), and at least
// one key of those must be there.
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
		return "some records ask for DS records, others for none"
	case !own.Delete && !fits:
		return fmt.Sprintf("no key of %s is one that its CDS or CDNSKEY records are for", z.name)
	}
	return ""
}
