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

// judgement is a state with its cause. Both texts are empty if the state is Secure.
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

// Limits on work, so that crafted records with many keys of one tag or many signatures cannot use up CPU time
// (CVE-2023-50387). Resolvers have tighter limits.
const (
	maxPerSet   = 16   // signatures of a set
	maxPerTag   = 4    // keys of one tag that are tried with a signature
	maxKeys     = 64   // keys of a server
	maxZoneKeys = 256  // keys of a zone, from all its servers
	maxShown    = 1000 // signatures of a zone in the result
	maxVerified = 2000 // signatures that are verified; those of large sets count several times
	largeSet    = 32   // records
	minRSA      = 1024 // Go does not verify signatures of smaller keys
	maxRSA      = 4096 // RFC 3110 §2
)

// ranks orders causes by how well they explain why a set has no valid signature.
var ranks = map[Cause]int{NoCause: 9, NotSeen: 8, Expired: 7, Early: 6, Mismatch: 5, Algorithm: 4, Missing: 3}

// verify judges a set by its signatures, one of which must be valid (RFC 4035 §5.3.1). It also returns that
// signature.
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
		best = bad(Missing, "%s %s has no signature with a supported algorithm", s.owner, rr.Type(s.typ))
	}
	return best, nil
}

// judge judges one signature with the keys of a zone.
func (v *validation) judge(z *zone, keys []*dns.DNSKEY, s *set, sig *dns.RRSIG) judgement {
	what := fmt.Sprintf("the signature of %s %s by key %d", s.owner, rr.Type(s.typ), sig.KeyTag)
	signer, err := dnsname.Parse(sig.SignerName)
	switch {
	case err != nil || signer != z.name:
		return bad(Mismatch, "%s has the signer name %s instead of %s", what, sig.SignerName, z.name)
	case len(s.records) == 0:
		return unknown(NotSeen, "%s came without the records that it signs", what)
	case !supported(sig.Algorithm):
		return bad(Algorithm, "%s has algorithm %d, which is not supported", what, sig.Algorithm)
	}
	j := bad(Mismatch, "%s was made with a key that the zone does not have", what)
	tried := 0
	for _, k := range keys {
		if k.Algorithm != sig.Algorithm || v.tag(k) != sig.KeyTag {
			continue
		}
		if tried++; tried > maxPerTag || *v.work >= maxVerified {
			return unknown(NotSeen, "%s was not verified: there are too many keys or signatures", what)
		}
		if j = v.judgeBy(k, s, sig, what); j.ok() {
			break
		}
	}
	return j
}

// judgeBy judges one signature with one key.
func (v *validation) judgeBy(k *dns.DNSKEY, s *set, sig *dns.RRSIG, what string) judgement {
	from, until := v.sigTime(sig.Inception), v.sigTime(sig.Expiration)
	switch {
	case k.Flags&dns.ZONE == 0 || k.Protocol != 3:
		return bad(Mismatch, "%s was made with a key that is not a zone key", what)
	case k.Flags&dns.REVOKE != 0 && s.typ != dns.TypeDNSKEY:
		return bad(Mismatch, "%s was made with a revoked key", what)
	case until.Before(v.now):
		return bad(Expired, "%s expired on %s", what, text(until))
	case from.After(v.now):
		return bad(Early, "%s is not valid before %s", what, text(from))
	case isRSA(k.Algorithm) && bits(k) < minRSA:
		return unknown(Algorithm, "%s cannot be verified here: its key has only %d bits", what, bits(k))
	case isRSA(k.Algorithm) && bits(k) > maxRSA:
		return unknown(Algorithm, "%s cannot be verified here: its key has %d bits", what, bits(k))
	}
	if !v.verifies(k, s, sig) {
		return bad(Mismatch, "%s does not verify", what)
	}
	return good
}

// verified identifies a signature and the key that it was verified with.
type verified struct {
	sig    sigKey
	key    string
	signer string
}

// verifies reports whether a signature verifies. It caches the result, because each server of a zone sends the same
// signatures.
func (v *validation) verifies(k *dns.DNSKEY, s *set, sig *dns.RRSIG) bool {
	id := verified{s.key(sig), k.PublicKey, k.Hdr.Name}
	fit, known := v.verified[id]
	if !known {
		*v.work += 1 + len(s.records)/largeSet
		fit = sig.Verify(k, s.records) == nil
		v.verified[id] = fit
	}
	return fit
}

// tag returns the tag of a key. It caches tags, because there are many signatures.
func (v *validation) tag(k *dns.DNSKEY) uint16 {
	t, ok := v.tags[k]
	if !ok {
		t = k.KeyTag()
		v.tags[k] = t
	}
	return t
}

func text(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// sigTime converts a time of a signature: 32 bits of seconds, closest to now (RFC 4034 §3.1.5).
func (v *validation) sigTime(seconds uint32) time.Time {
	now := v.now.Unix()
	return time.Unix(now+int64(int32(seconds-uint32(now))), 0).UTC()
}

// expanded reports whether a set was expanded from a wildcard, as its signature shows (RFC 4035 §5.3.4). It also
// returns the number of labels of the wildcard's parent.
func expanded(s *set, sig *dns.RRSIG) (labels int, yes bool) {
	n := s.owner.NumLabels()
	if s.owner.IsWildcard() {
		n--
	}
	return int(sig.Labels), int(sig.Labels) < n
}

// supported reports whether an algorithm can be verified. A zone with other algorithms counts as unsigned (RFC 4035
// §5.2).
func supported(algorithm uint8) bool {
	return isRSA(algorithm) || slices.Contains([]uint8{dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.ED25519}, algorithm)
}

func isRSA(algorithm uint8) bool {
	return slices.Contains([]uint8{dns.RSASHA1, dns.RSASHA1NSEC3SHA1, dns.RSASHA256, dns.RSASHA512}, algorithm)
}

// bits returns the size of a key in bits, or 0 if it is not known.
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
	// The exponent length is in one byte, or in two bytes after a zero byte (RFC 3110 §2).
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

// supportedDigest reports whether a digest type can be verified: SHA-1, SHA-256 and SHA-384.
func supportedDigest(t uint8) bool { return t == dns.SHA1 || t == dns.SHA256 || t == dns.SHA384 }
