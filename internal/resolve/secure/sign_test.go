package secure_test

import (
	"crypto"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// key is a key pair of a zone.
type key struct {
	*dns.DNSKEY
	signer crypto.Signer
}

var (
	pairsMu sync.Mutex // guards pairs
	pairs   = map[[3]int]key{}
)

// newKey returns a key pair for a zone. Generating keys is slow, so pairs with the same algorithm, size and number
// are shared. Flags of 257 mean a key signing key.
func newKey(zone string, flags uint16, algorithm uint8, bits, nth int) key {
	pairsMu.Lock()
	defer pairsMu.Unlock()
	id := [3]int{int(algorithm), bits, nth}
	pair, ok := pairs[id]
	if !ok {
		pair.DNSKEY = &dns.DNSKEY{Protocol: 3, Algorithm: algorithm}
		private, err := pair.Generate(bits)
		if err != nil {
			panic(err)
		}
		pair.signer = private.(crypto.Signer)
		pairs[id] = pair
	}
	record := *pair.DNSKEY
	record.Hdr = dns.RR_Header{Name: zone, Rrtype: dns.TypeDNSKEY, Class: dns.ClassINET, Ttl: 300}
	record.Flags = flags
	return key{&record, pair.signer}
}

func newKSK(zone string) key { return newKey(zone, 257, dns.ECDSAP256SHA256, 256, 1) }

// signing has the parameters for signing a zone.
type signing struct {
	keys       []key
	nsec3      bool
	optOut     bool
	iterations uint16
	salt       string
	from, to   time.Time
	noDNSKEY   bool
}

// signed is a signed zone that answers queries. Tests may damage it before the first query.
type signed struct {
	origin  dnsname.Name
	sets    map[rrKey][]dns.RR
	sigs    map[rrKey][]dns.RR
	names   []dnsname.Name // existing names in order, including empty non-terminals
	how     signing
	denials map[string]dns.RR // NSEC by owner, NSEC3 by hash
	order   []string          // the keys of denials, in the order of the chain
}

type rrKey struct {
	name dnsname.Name
	typ  uint16
}

func keyOf(rec dns.RR) rrKey { return rrKey{dnsname.MustParse(rec.Header().Name), rec.Header().Rrtype} }

// newZone parses records and signs them if there are keys.
func newZone(origin, text string, how signing) *signed {
	z := &signed{origin: dnsname.MustParse(origin), sets: map[rrKey][]dns.RR{}, sigs: map[rrKey][]dns.RR{}, how: how,
		denials: map[string]dns.RR{}}
	p := dns.NewZoneParser(strings.NewReader("$TTL 300\n@ SOA ns h 1 2 3 4 60\n"+text), origin, "")
	for rec, ok := p.Next(); ok; rec, ok = p.Next() {
		z.sets[keyOf(rec)] = append(z.sets[keyOf(rec)], rec)
	}
	if err := p.Err(); err != nil {
		panic(err)
	}
	for _, k := range how.keys {
		if !how.noDNSKEY {
			z.sets[keyOf(k.DNSKEY)] = append(z.sets[keyOf(k.DNSKEY)], k.DNSKEY)
		}
	}
	exist := map[dnsname.Name]bool{}
	for k := range z.sets {
		for n := k.name; n.IsIn(z.origin) && !exist[n]; n = n.Parent() {
			exist[n] = true
		}
	}
	z.names = slices.SortedFunc(maps.Keys(exist), dnsname.Name.Compare)
	if len(how.keys) > 0 {
		z.chain()
		z.signAll()
	}
	return z
}

// cut returns the delegation that a name is at or below.
func (z *signed) cut(name dnsname.Name) (cut dnsname.Name) {
	for n := name; n != z.origin; n = n.Parent() {
		if len(z.sets[rrKey{n, dns.TypeNS}]) > 0 {
			cut = n
		}
	}
	return cut
}

func (z *signed) types(name dnsname.Name, more ...uint16) (out []uint16) {
	for k := range z.sets {
		if k.name == name && (z.cut(name).IsZero() || k.typ == dns.TypeNS || k.typ == dns.TypeDS) {
			out = append(out, k.typ)
		}
	}
	if len(out) > 0 && (z.cut(name).IsZero() || slices.Contains(out, dns.TypeDS)) {
		out = append(out, dns.TypeRRSIG)
	}
	out = append(out, more...)
	slices.Sort(out)
	return out
}

// chain creates the NSEC or NSEC3 records.
func (z *signed) chain() {
	header := func(owner string, typ uint16) dns.RR_Header {
		return dns.RR_Header{Name: owner, Rrtype: typ, Class: dns.ClassINET, Ttl: 60}
	}
	var owners []dnsname.Name
	for _, n := range z.names {
		cut := z.cut(n)
		switch {
		case !cut.IsZero() && cut != n: // glue
		case !z.how.nsec3 && len(z.types(n)) == 0: // empty non-terminals have no NSEC record
		case z.how.optOut && cut == n && len(z.sets[rrKey{n, dns.TypeDS}]) == 0:
		default:
			owners = append(owners, n)
		}
	}
	if !z.how.nsec3 {
		for i, n := range owners {
			z.order = append(z.order, n.String())
			z.denials[n.String()] = &dns.NSEC{Hdr: header(n.String(), dns.TypeNSEC),
				NextDomain: owners[(i+1)%len(owners)].String(),
				TypeBitMap: z.types(n, dns.TypeNSEC)}
			if z.cut(n) == n && len(z.sets[rrKey{n, dns.TypeDS}]) == 0 {
				z.denials[n.String()].(*dns.NSEC).TypeBitMap = []uint16{dns.TypeNS, dns.TypeRRSIG, dns.TypeNSEC}
			}
		}
		return
	}
	flags := uint8(0)
	if z.how.optOut {
		flags = 1
	}
	for _, n := range owners {
		h := z.hash(n)
		z.order = append(z.order, h)
		z.denials[h] = &dns.NSEC3{Hdr: header(strings.ToLower(h)+"."+strings.TrimPrefix(z.origin.String(), "."),
			dns.TypeNSEC3), Hash: 1, Flags: flags,
			Iterations: z.how.iterations, SaltLength: uint8(len(z.how.salt) / 2), Salt: z.how.salt, HashLength: 20,
			TypeBitMap: z.types(n)}
	}
	slices.Sort(z.order)
	for i, h := range z.order {
		z.denials[h].(*dns.NSEC3).NextDomain = z.order[(i+1)%len(z.order)]
	}
}

func (z *signed) hash(n dnsname.Name) string {
	return strings.ToUpper(dns.HashName(n.String(), dns.SHA1, z.how.iterations, z.how.salt))
}

func (z *signed) signAll() {
	for k, set := range z.sets {
		cut := z.cut(k.name)
		if cut.IsZero() || cut == k.name && k.typ == dns.TypeDS {
			z.sigs[k] = z.sign(set)
		}
	}
	for _, rec := range z.denials {
		z.sigs[keyOf(rec)] = z.sign([]dns.RR{rec})
	}
}

// sign signs a set. If there are both kinds of keys, key signing keys sign the DNSKEY set and the others all other
// sets.
func (z *signed) sign(set []dns.RR) (out []dns.RR) {
	sep := func(k key) bool { return k.Flags&dns.SEP != 0 }
	both := slices.ContainsFunc(z.how.keys, sep) && slices.ContainsFunc(z.how.keys, func(k key) bool { return !sep(k) })
	for _, k := range z.how.keys {
		if both && sep(k) != (set[0].Header().Rrtype == dns.TypeDNSKEY) {
			continue
		}
		sig := &dns.RRSIG{Hdr: dns.RR_Header{Ttl: set[0].Header().Ttl}, KeyTag: k.KeyTag(), SignerName: z.origin.String(),
			Algorithm: k.Algorithm,
			Inception: uint32(z.how.from.Unix()), Expiration: uint32(z.how.to.Unix())}
		if err := sig.Sign(k.signer, set); err != nil {
			panic(err)
		}
		out = append(out, sig)
	}
	return out
}

// resign replaces the signatures of a changed set.
func (z *signed) resign(k rrKey, from, to time.Time) {
	how := z.how
	z.how.from, z.how.to = from, to
	set := z.sets[k]
	if len(set) == 0 {
		for _, rec := range z.denials {
			if keyOf(rec) == k {
				set = []dns.RR{rec}
			}
		}
	}
	z.sigs[k] = z.sign(set)
	z.how = how
}
