package simnet

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// signer signs the answers of a zone when they are sent, so that changed records are signed too.
type signer struct {
	zone    dnsname.Name
	private ed25519.PrivateKey
	public  *dns.DNSKEY
	begins  time.Duration // start of the validity of signatures, relative to now
	ends    time.Duration
	broken  bool        // signatures are invalid, except that of the key
	noProof bool        // omits NSEC records
	bare    bool        // does not sign NSEC, NSEC3, CDS and CDNSKEY records
	nsec3   *nsec3      // nil: NSEC
	extra   *dns.DNSKEY // a key that signs nothing; nil: none
}

const (
	keyTTL     = 3600
	keyFlags   = 257 // zone key, secure entry point
	keyDNSSEC  = 3   // protocol (RFC 4034 §2.1.2)
	signedDays = 14 * 24 * time.Hour
)

// newSigner creates the key of a zone. It is derived from the names of the zone and of the key, so that all servers
// of the zone and its parent know it. It protects nothing.
func newSigner(zone dnsname.Name, name string) *signer {
	seed := sha256.Sum256([]byte("simnet " + zone.String() + " " + name))
	private := ed25519.NewKeyFromSeed(seed[:])
	k := &signer{zone: zone, private: private, begins: -time.Hour, ends: signedDays}
	k.public = &dns.DNSKEY{Hdr: header(zone.String(), dns.TypeDNSKEY, keyTTL), Flags: keyFlags, Protocol: keyDNSSEC,
		Algorithm: dns.ED25519}
	k.public.PublicKey = base64.StdEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
	return k
}

// Anchor returns the DS record of a zone that servers sign with `sign ZONE`, as text. For the root it is the trust
// anchor.
func Anchor(zone dnsname.Name) string { return newSigner(zone, "").ds(keyTTL).String() }

// child returns the CDS and the CDNSKEY record, with which the zone asks for its DS (RFC 7344).
func (k *signer) child(ttl uint32) (*dns.CDS, *dns.CDNSKEY) {
	cds, key := k.ds(ttl).ToCDS(), k.public.ToCDNSKEY()
	cds.Hdr.Ttl, key.Hdr.Ttl = ttl, ttl
	return cds, key
}

// ds returns the DS record for the parent.
func (k *signer) ds(ttl uint32) *dns.DS {
	ds := k.public.ToDS(dns.SHA256)
	ds.Hdr.Ttl = ttl
	return ds
}

// sign signs a set.
func (k *signer) sign(set []dns.RR) (dns.RR, error) {
	now := time.Now()
	sig := &dns.RRSIG{Hdr: dns.RR_Header{Ttl: set[0].Header().Ttl}, KeyTag: k.public.KeyTag(),
		SignerName: k.zone.String(), Algorithm: dns.ED25519, Inception: uint32(now.Add(k.begins).Unix()),
		Expiration: uint32(now.Add(k.ends).Unix())}
	if err := sig.Sign(k.private, set); err != nil {
		return nil, err
	}
	if k.broken && set[0].Header().Rrtype != dns.TypeDNSKEY {
		sig.Signature = base64.StdEncoding.EncodeToString(make([]byte, ed25519.SignatureSize))
	}
	return sig, nil
}

// signLocked adds signatures and proofs to a reply if the query has the DO bit and the zone is signed.
func (s *Server) signLocked(q *query) {
	if !q.do() || len(s.signers) == 0 && !s.hasSignaturesLocked() {
		return
	}
	s.proveLocked(q)
	q.reply.Answer = s.signedLocked(q, q.reply.Answer)
	q.reply.Ns = s.signedLocked(q, q.reply.Ns)
}

// hasSignaturesLocked reports whether a zone has signatures as records.
func (s *Server) hasSignaturesLocked() bool {
	for k := range s.sets {
		if k.typ == dns.TypeRRSIG {
			return true
		}
	}
	return false
}

// signedLocked returns a section with signatures after each set.
func (s *Server) signedLocked(q *query, section []dns.RR) (out []dns.RR) {
	for len(section) > 0 {
		h := section[0].Header()
		n := 1
		for n < len(section) && section[n].Header().Name == h.Name && section[n].Header().Rrtype == h.Rrtype {
			n++
		}
		out = append(out, section[:n]...)
		out = append(out, s.signaturesLocked(q, section[:n])...)
		section = section[n:]
	}
	return out
}

// signaturesLocked returns the signatures of one set: those that are records of the zone, or a new one.
func (s *Server) signaturesLocked(q *query, set []dns.RR) (out []dns.RR) {
	typ, name := set[0].Header().Rrtype, dnsname.MustParse(set[0].Header().Name)
	at := name
	if star, ok := q.wild[name]; ok {
		at = star
	}
	for _, rec := range s.sets[key{at, dns.TypeRRSIG}] {
		if sig := rec.(*dns.RRSIG); sig.TypeCovered == typ {
			c := dns.Copy(sig)
			c.Header().Name = name.String()
			out = append(out, c)
		}
	}
	zone := s.signingLocked(name, typ)
	k := s.signers[zone]
	if len(out) > 0 || k == nil || typ == dns.TypeRRSIG || typ == dns.TypeNS && name != zone ||
		k.bare && slices.Contains([]uint16{dns.TypeNSEC, dns.TypeNSEC3, dns.TypeCDS, dns.TypeCDNSKEY}, typ) {
		return out
	}
	sig, err := k.sign(copies(set, func(h *dns.RR_Header) { h.Name = at.String() }))
	if err != nil {
		return nil // the set cannot be packed, so it will not be sent either
	}
	sig.Header().Name = name.String()
	return []dns.RR{sig}
}

// signingLocked returns the zone that signs a set. DS records are signed by the parent, if this server has it.
func (s *Server) signingLocked(name dnsname.Name, typ uint16) dnsname.Name {
	if typ == dns.TypeDS && !name.IsRoot() {
		if above := s.apexLocked(name.Parent()); !above.IsZero() {
			return above
		}
	}
	return s.apexLocked(name)
}

// proveLocked adds the NSEC records that a reply needs (RFC 4035 §3.1.3).
func (s *Server) proveLocked(q *query) {
	r := q.reply
	for name := range q.wild {
		r.Ns = append(r.Ns, s.denyLocked(s.apexLocked(name), name)...)
	}
	for _, rec := range slices.Clone(r.Ns) {
		owner := dnsname.MustParse(rec.Header().Name)
		switch rec.(type) {
		case *dns.NS:
			if s.zones[owner] == nil && len(s.sets[key{owner, dns.TypeDS}]) == 0 {
				r.Ns = append(r.Ns, s.denyLocked(s.apexLocked(owner), owner)...)
				return
			}
		case *dns.SOA:
			last := s.lastLocked(q)
			r.Ns = append(r.Ns, s.denyLocked(owner, last)...)
			// Prove that there is no wildcard, or that it does not have the type (RFC 4035 §3.1.3.4).
			if star, err := s.encloserLocked(last).Child("*"); !s.existsLocked(last) && err == nil {
				r.Ns = append(r.Ns, s.denyLocked(owner, star)...)
			}
			r.Ns = unique(r.Ns)
			return
		}
	}
}

// lastLocked returns the name that a negative reply is about.
func (s *Server) lastLocked(q *query) dnsname.Name {
	last := q.name
	for _, rec := range q.reply.Answer {
		if c, ok := rec.(*dns.CNAME); ok {
			last = dnsname.MustParse(c.Target)
		}
	}
	return last
}

// denyLocked returns the NSEC record of a zone that matches or covers a name.
func (s *Server) denyLocked(zone, name dnsname.Name) []dns.RR {
	if k := s.signers[zone]; k == nil || k.noProof {
		return s.storedNSECLocked(zone, name)
	} else if k.nsec3 != nil {
		return s.denyHashedLocked(zone, name, k.nsec3)
	}
	owners := s.ownersLocked(zone)
	at, found := slices.BinarySearchFunc(owners, name, dnsname.Name.Compare)
	if !found {
		at--
	}
	if at < 0 {
		return nil
	}
	owner, next := owners[at], owners[(at+1)%len(owners)]
	return []dns.RR{&dns.NSEC{Hdr: header(owner.String(), dns.TypeNSEC, negative(s.zones[zone]).Header().Ttl),
		NextDomain: next.String(), TypeBitMap: s.bitmapLocked(zone, owner)}}
}

// storedNSECLocked returns an NSEC record that is a record of the zone.
func (s *Server) storedNSECLocked(zone, name dnsname.Name) []dns.RR {
	for k, set := range s.sets {
		if k.typ != dns.TypeNSEC || s.apexLocked(k.name) != zone {
			continue
		}
		next := dnsname.MustParse(set[0].(*dns.NSEC).NextDomain)
		if k.name == name || k.name.Compare(name) < 0 && (name.Compare(next) < 0 || next == zone) {
			return []dns.RR{dns.Copy(set[0])}
		}
	}
	return nil
}

// ownersLocked returns the names of a zone that have authoritative records or delegations, in canonical order.
func (s *Server) ownersLocked(zone dnsname.Name) []dnsname.Name {
	owners := []dnsname.Name{zone}
	for k := range s.sets {
		apex := s.apexLocked(k.name)
		if apex == k.name && k.typ == dns.TypeNS && !apex.IsRoot() {
			apex = s.apexLocked(apex.Parent()) // the delegation to a zone of the same server
		}
		if apex == zone && !s.cutAboveLocked(k.name) {
			owners = append(owners, k.name)
		}
	}
	slices.SortFunc(owners, dnsname.Name.Compare)
	return slices.Compact(owners)
}

func (s *Server) bitmapLocked(zone, owner dnsname.Name) []uint16 {
	types := []uint16{dns.TypeRRSIG, dns.TypeNSEC}
	if owner == zone {
		types = append(types, dns.TypeSOA, dns.TypeDNSKEY)
	}
	cut := owner != zone && len(s.sets[key{owner, dns.TypeNS}]) > 0
	for k := range s.sets {
		if k.name == owner && (!cut || k.typ == dns.TypeNS || k.typ == dns.TypeDS) {
			types = append(types, k.typ)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func unique(section []dns.RR) (out []dns.RR) {
	seen := map[string]bool{}
	for _, rec := range section {
		if text := fmt.Sprint(rec); !seen[text] {
			seen[text] = true
			out = append(out, rec)
		}
	}
	return out
}
