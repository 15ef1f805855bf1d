package secure

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// showDS adds a DS record and the servers that have it to the result.
func (z *zone) showDS(d *dns.DS, from []netip.Addr) {
	digest := strings.ToUpper(d.Digest)
	for i, o := range z.shown.DS {
		if o.KeyTag == d.KeyTag && o.Algorithm == d.Algorithm && o.DigestType == d.DigestType && o.Digest == digest {
			z.shown.DS[i].From = iterate.Union(o.From, from)
			return
		}
	}
	matching := slices.ContainsFunc(z.keys, func(k *dns.DNSKEY) bool { return k.Flags&dns.REVOKE == 0 && matches(d, k) })
	z.shown.DS = append(z.shown.DS, DS{KeyTag: d.KeyTag, Algorithm: d.Algorithm, DigestType: d.DigestType, Digest: digest,
		TTL: d.Hdr.Ttl, Matches: matching, From: from})
}

// showSet adds the keys of a server to the result.
func (z *zone) showSet(k keySet, j judgement) {
	own := KeySet{From: []netip.Addr{k.from}, State: j.state, Cause: j.cause}
	for _, key := range keysOf(k.set) {
		own.KeyTags, own.TTL = append(own.KeyTags, key.KeyTag()), key.Hdr.Ttl
	}
	slices.Sort(own.KeyTags)
	own.KeyTags = slices.Compact(own.KeyTags)
	for i, o := range z.shown.KeySets {
		if slices.Equal(o.KeyTags, own.KeyTags) && o.State == own.State && o.Cause == own.Cause {
			z.shown.KeySets[i].From = iterate.Union(o.From, []netip.Addr{k.from})
			return
		}
	}
	z.shown.KeySets = append(z.shown.KeySets, own)
}

// showKeys adds all keys and the servers that have them to the result.
func (v *validation) showKeys(z *zone, sets []keySet) {
	var all []*dns.DNSKEY
	for _, k := range sets {
		all = append(all, newKeys(all, keysOf(k.set))...)
	}
	for _, k := range all {
		own := Key{KeyTag: k.KeyTag(), Algorithm: k.Algorithm, Flags: k.Flags, Bits: bits(k), SEP: k.Flags&dns.SEP != 0,
			Revoked: k.Flags&dns.REVOKE != 0}
		for _, s := range sets {
			if slices.ContainsFunc(keysOf(s.set), func(o *dns.DNSKEY) bool { return dns.IsDuplicate(k, o) }) {
				own.From = iterate.Union(own.From, []netip.Addr{s.from})
			}
		}
		z.shown.Keys = append(z.shown.Keys, own)
	}
	slices.SortStableFunc(z.shown.Keys, func(a, b Key) int { return int(a.KeyTag) - int(b.KeyTag) })
}
