package secure

import (
	"encoding/base64"
	"fmt"
	mathbits "math/bits"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// judgement is what is to be said of something: nothing, if it is good.
type judgement struct {
	state State
	cause Cause
	why   string
}

func (j judgement) ok() bool { return j.state == Secure }

var good = judgement{state: Secure}

func bad(c Cause, format string, args ...any) judgement {
	return judgement{Bogus, c, fmt.Sprintf(format, args...)}
}

func insecure(c Cause, format string, args ...any) judgement {
	return judgement{Insecure, c, fmt.Sprintf(format, args...)}
}

func unknown(c Cause, format string, args ...any) judgement {
	return judgement{Unknown, c, fmt.Sprintf(format, args...)}
}

// Bounds on work, so that records made for it cannot keep us busy (CVE-2023-50387): many keys of one tag, many signatures.
// Resolvers have tighter ones.
const (
	maxPerSet = 16   // signatures of a set
	maxPerTag = 4    // keys of one tag that a signature is tried with
	maxKeys   = 64   // of a server
	maxZone   = 256  // keys of a zone, of all its servers
	maxShown  = 1000 // signatures of a zone
	maxInAll  = 2000 // signatures that are verified; those of large sets count for several
	largeSet  = 32   // records
	minRSA    = 1024 // below, Go verifies nothing
	maxRSA    = 4096 // RFC 3110 §2
)

// ranks of causes, from what tells the most about why a set has no good signature.
var ranks = map[Cause]int{NoCause: 9, NotSeen: 8, Expired: 7, Early: 6, Mismatch: 5, Algorithm: 4, Missing: 3}

// verify judges a set by its signatures, one of which must be good (RFC 4035 §5.3.1), and tells which one is.
func (v *validation) verify(z *zone, keys []*dns.DNSKEY, s *set) (judgement, *dns.RRSIG) {
	best := bad(Missing, "%s %s is not signed", s.owner, rr.Type(s.typ))
	for _, sig := range s.sigs {
		j := v.judge(z, keys, s, sig)
		if j.ok() {
			return j, sig
		}
		if ranks[j.cause] > ranks[best.cause] {
			best = j
		}
	}
	if best.cause == Algorithm && best.state != Unknown {
		best = bad(Missing, "%s %s has no signature of an algorithm of the zone that can be verified", s.owner, rr.Type(s.typ))
	}
	return best, nil
}

// judge judges one signature by keys of a zone.
func (v *validation) judge(z *zone, keys []*dns.DNSKEY, s *set, sig *dns.RRSIG) judgement {
	what := fmt.Sprintf("the signature of %s %s by key %d", s.owner, rr.Type(s.typ), sig.KeyTag)
	signer, err := dnsname.Parse(sig.SignerName)
	switch {
	case err != nil || signer != z.name:
		return bad(Mismatch, "%s is in the name of %s, not of the zone %s", what, sig.SignerName, z.name)
	case len(s.records) == 0:
		return unknown(NotSeen, "%s came without what it signs", what)
	case !supported(sig.Algorithm):
		return bad(Algorithm, "%s is of algorithm %d, which is not verified", what, sig.Algorithm)
	}
	j := bad(Mismatch, "%s is of a key that the zone does not have", what)
	tried := 0
	for _, k := range keys {
		if k.Algorithm != sig.Algorithm || v.tag(k) != sig.KeyTag {
			continue
		}
		if tried++; tried > maxPerTag || *v.work >= maxInAll {
			return unknown(NotSeen, "%s was not verified: there are too many", what)
		}
		if j = v.judgeBy(k, s, sig, what); j.ok() {
			break
		}
	}
	return j
}

func (v *validation) judgeBy(k *dns.DNSKEY, s *set, sig *dns.RRSIG, what string) judgement {
	from, until := v.moment(sig.Inception), v.moment(sig.Expiration)
	switch {
	case k.Flags&dns.ZONE == 0 || k.Protocol != 3:
		return bad(Mismatch, "%s is of a key that is not for zones", what)
	case k.Flags&dns.REVOKE != 0 && s.typ != dns.TypeDNSKEY:
		return bad(Mismatch, "%s is of a key that was revoked", what)
	case until.Before(v.now):
		return bad(Expired, "%s expired on %s", what, text(until))
	case from.After(v.now):
		return bad(Early, "%s is valid only from %s on", what, text(from))
	case isRSA(k.Algorithm) && bits(k) < minRSA:
		return unknown(Algorithm, "%s cannot be verified here: its key has only %d bits", what, bits(k))
	case isRSA(k.Algorithm) && bits(k) > maxRSA:
		return unknown(Algorithm, "%s cannot be verified here: its key has %d bits", what, bits(k))
	}
	if !v.fits(k, s, sig) {
		return bad(Mismatch, "%s does not fit what it signs", what)
	}
	return good
}

// verified tells a signature and a key, by which it was verified.
type verified struct {
	sig    sigKey
	key    string
	signer string
}

// fits verifies a signature, once: each server of a zone sends the same ones.
func (v *validation) fits(k *dns.DNSKEY, s *set, sig *dns.RRSIG) bool {
	id := verified{s.key(sig), k.PublicKey, k.Hdr.Name}
	fit, known := v.verified[id]
	if !known {
		*v.work += 1 + len(s.records)/largeSet
		fit = sig.Verify(k, s.records) == nil
		v.verified[id] = fit
	}
	return fit
}

// tag is the tag of a key, computed once: signatures are many.
func (v *validation) tag(k *dns.DNSKEY) uint16 {
	t, ok := v.tags[k]
	if !ok {
		t = k.KeyTag()
		v.tags[k] = t
	}
	return t
}

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// moment is a time of a signature: seconds in 32 bits, near to now (RFC 4034 §3.1.5).
func (v *validation) moment(seconds uint32) time.Time {
	now := v.now.Unix()
	return time.Unix(now+int64(int32(seconds-uint32(now))), 0).UTC()
}

// expanded reports whether a wildcard made a set, as a signature of it shows (RFC 4035 §5.3.4), and how many labels the
// wildcard is below.
func expanded(s *set, sig *dns.RRSIG) (labels int, yes bool) {
	n := s.owner.NumLabels()
	if s.owner.IsWildcard() {
		n--
	}
	return int(sig.Labels), int(sig.Labels) < n
}

// supported reports whether an algorithm can be verified. Others are as if the zone was not signed (RFC 4035 §5.2).
func supported(algorithm uint8) bool {
	return isRSA(algorithm) || slices.Contains([]uint8{dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519}, algorithm)
}

func isRSA(algorithm uint8) bool {
	return slices.Contains([]uint8{dns.RSASHA1, dns.RSASHA1NSEC3SHA1, dns.RSASHA256, dns.RSASHA512}, algorithm)
}

// bits is the size of a key.
func bits(k *dns.DNSKEY) int {
	switch k.Algorithm {
	case dns.ECDSAP256SHA256, dns.ED25519:
		return 256
	case dns.ECDSAP384SHA384:
		return 384
	case dns.ED448:
		return 456
	}
	b, err := base64.StdEncoding.DecodeString(k.PublicKey)
	if err != nil || !isRSA(k.Algorithm) || len(b) < 3 {
		return 0
	}
	// RFC 3110 §2: the length of the exponent in one octet, or in two behind a zero one.
	skip := 1 + int(b[0])
	if b[0] == 0 {
		skip = 3 + int(b[1])<<8 + int(b[2])
	}
	for skip < len(b) && b[skip] == 0 {
		skip++
	}
	if skip >= len(b) {
		return 0
	}
	return (len(b)-skip-1)*8 + mathbits.Len8(b[skip])
}

// digestible reports whether a digest type is verified: SHA-1, SHA-256 and SHA-384.
func digestible(t uint8) bool { return t == dns.SHA1 || t == dns.SHA256 || t == dns.SHA384 }
