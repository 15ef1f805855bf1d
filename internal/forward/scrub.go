package forward

import (
	"errors"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// newEntry makes an entry of what an upstream replied; nil when that is no answer, and then perhaps with the reason.
//
// Of the reply it takes only what answers the question: the chain of CNAMEs from the name that was asked for, the records
// at its end, or the SOA that says there are none, and for those who want it, the DNSSEC records for these. Everything
// else, however well meant, would be somebody's word on names that nobody asked about.
func newEntry(q *Question, reply *dns.Msg) (*entry, int) {
	ede := extendedError(reply)
	switch reply.Rcode {
	case wire.RcodeNoError, wire.RcodeNXDomain, wire.RcodeYXDomain:
	case wire.RcodeRefused:
		return nil, wire.EDENoReachable
	default:
		return nil, ede
	}
	s := &scrubber{reply: reply, want: uint16(q.Type), do: q.DO, cur: reply.Question[0].Name, life: maxTTL}
	s.index()
	s.follow()
	s.negative()
	if reply.Truncated || !s.isAnswer() {
		return nil, ede
	}
	e := &entry{rcode: uint8(reply.Rcode), ad: reply.AuthenticatedData, ede: ede, life: s.life,
		answers: len(s.answer), authorities: len(s.authority)}
	if err := e.pack(q, s); err != nil {
		return nil, ede
	}
	return e, ede
}

// extendedError is the first extended error of a reply.
func extendedError(reply *dns.Msg) int {
	if opt := reply.IsEdns0(); opt != nil {
		for _, o := range opt.Option {
			if e, ok := o.(*dns.EDNS0_EDE); ok {
				return int(e.InfoCode)
			}
		}
	}
	return wire.EDENone
}

// scrubber picks an answer out of a reply.
type scrubber struct {
	reply *dns.Msg
	want  uint16
	do    bool

	sets      map[set][]dns.RR // of the answer section
	dnames    []*dns.DNAME
	cur       string // the end of the chain, so far
	found     bool   // records of the type were there
	denied    bool   // or the SOA that says there are none
	signers   []string
	answer    []dns.RR
	authority []dns.RR
	life      time.Duration
}

// set names a record set of class IN.
type set struct {
	owner string // in lower case
	t     uint16
}

// index sorts the answer section once. Who owns a zone can have a reply of thousands of records behind a long chain, and to
// look at all of them again for each of its steps would be work for us that costs him one query.
func (s *scrubber) index() {
	s.sets = make(map[set][]dns.RR)
	var last, lower string // most owners are the same as the one before
	for _, r := range s.reply.Answer {
		h := r.Header()
		if h.Class != wire.ClassIN {
			continue
		}
		if h.Name != last || lower == "" {
			last, lower = h.Name, dns.CanonicalName(h.Name)
		}
		at := set{lower, h.Rrtype}
		s.sets[at] = append(s.sets[at], r)
		if d, ok := r.(*dns.DNAME); ok {
			s.dnames = append(s.dnames, d)
		}
	}
}

// follow walks from the name asked for to the records at the end of the chain. It puts them in this order: stubs
// read them so.
func (s *scrubber) follow() {
	seen := map[string]bool{}
	for range wire.MaxChain {
		seen[dns.CanonicalName(s.cur)] = true
		if s.take(s.cur, s.want) > 0 {
			s.found = true
			return
		}
		s.takeDNAME()
		at := len(s.answer)
		if s.take(s.cur, dns.TypeCNAME) == 0 {
			return
		}
		next := s.answer[at].(*dns.CNAME).Target
		if seen[dns.CanonicalName(next)] {
			return // a loop; what it consists of is the answer
		}
		s.cur = next
	}
}

// take moves the records of a name and type into the answer, with their signatures, and tells how many there were. Of
// CNAMEs there can be one.
func (s *scrubber) take(owner string, t uint16) int {
	all := s.sets[set{dns.CanonicalName(owner), t}]
	if t == dns.TypeCNAME {
		all = all[:min(len(all), 1)]
	}
	for _, r := range all {
		s.put(r, owner)
	}
	if len(all) > 0 && s.do {
		s.takeSignatures(owner, t)
	}
	return len(all)
}

func (s *scrubber) takeSignatures(owner string, t uint16) {
	if s.want == dns.TypeRRSIG {
		return
	}
	for _, r := range s.sets[set{dns.CanonicalName(owner), dns.TypeRRSIG}] {
		if sig, ok := r.(*dns.RRSIG); ok && sig.TypeCovered == t {
			s.put(r, owner)
			s.addSigner(sig.SignerName)
		}
	}
}

// addSigner notes a zone that the answer is from.
func (s *scrubber) addSigner(zone string) {
	if !slices.Contains(s.signers, zone) {
		s.signers = append(s.signers, zone)
	}
}

// takeDNAME takes the DNAME that the CNAME of the current name was made from (RFC 6672 §3.1), which may have served
// an earlier name of the chain already.
func (s *scrubber) takeDNAME() {
	for _, d := range s.dnames {
		if !isBelow(s.cur, d.Hdr.Name) {
			continue
		}
		if slices.Contains(s.answer, dns.RR(d)) {
			return
		}
		s.put(d, d.Hdr.Name)
		if s.do {
			s.takeSignatures(d.Hdr.Name, dns.TypeDNAME)
		}
		return
	}
}

// put appends to the answer, with its owner in the spelling that the message has already.
func (s *scrubber) put(r dns.RR, owner string) {
	r.Header().Name = owner
	s.bound(r, maxTTL)
	s.answer = append(s.answer, r)
}

// bound brings a record's TTL to a ceiling at most, and the lifetime of the answer to no more than it.
func (s *scrubber) bound(r dns.RR, ceiling time.Duration) {
	h := r.Header()
	if h.Ttl > 1<<31-1 {
		h.Ttl = 0 // RFC 2181 §8
	}
	ttl := min(time.Duration(h.Ttl)*time.Second, ceiling)
	h.Ttl = uint32(ttl / time.Second)
	s.life = min(s.life, ttl)
}

// negative takes the SOA that denies, if nothing was found, and the proofs that go with it or with a wildcard.
func (s *scrubber) negative() {
	if !s.found {
		for _, r := range s.reply.Ns {
			soa, ok := r.(*dns.SOA)
			if ok && soa.Hdr.Class == wire.ClassIN && dns.IsSubDomain(soa.Hdr.Name, s.cur) {
				// RFC 2308 §5: the lesser of the SOA's TTL and its MINIMUM.
				soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
				s.bound(soa, maxNegative)
				s.authority = append(s.authority, soa)
				s.addSigner(soa.Hdr.Name)
				s.denied = true
				break
			}
		}
	}
	if !s.do {
		return
	}
	for _, r := range s.reply.Ns {
		if s.isProof(r) {
			s.bound(r, maxTTL)
			s.authority = append(s.authority, r)
		}
	}
}

// isProof reports whether a record of the authority section proves something about the zones that the answer is from.
func (s *scrubber) isProof(r dns.RR) bool {
	t := r.Header().Rrtype
	if sig, ok := r.(*dns.RRSIG); ok {
		t = sig.TypeCovered
		if t == dns.TypeSOA && s.found {
			return false
		}
	} else if t == dns.TypeSOA {
		return false
	}
	if r.Header().Class != wire.ClassIN || t != dns.TypeSOA && t != dns.TypeNSEC && t != dns.TypeNSEC3 {
		return false
	}
	return slices.ContainsFunc(s.signers, func(zone string) bool { return dns.IsSubDomain(zone, r.Header().Name) })
}

// isAnswer tells an answer from a referral and from nonsense. It also sees to it that a denial without an SOA is not kept
// (RFC 2308 §5).
func (s *scrubber) isAnswer() bool {
	switch {
	case s.found:
		return s.reply.Rcode == wire.RcodeNoError
	case s.reply.Rcode == wire.RcodeYXDomain:
		return len(s.answer) > 0
	case !s.denied:
		s.life = 0
	}
	if s.denied || s.reply.Rcode == wire.RcodeNXDomain {
		return true
	}
	// With NS records it is a referral: this server does not resolve for us.
	refers := slices.ContainsFunc(s.reply.Ns, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeNS })
	return !refers && s.reply.RecursionAvailable
}

func isBelow(name, zone string) bool {
	return dns.IsSubDomain(zone, name) && dns.CountLabel(name) > dns.CountLabel(zone)
}

var errPacked = errors.New("the packed answer is not as it should be")

// pack turns the records into wire form, as they stand behind the question.
func (e *entry) pack(q *Question, s *scrubber) error {
	m := dns.Msg{Question: s.reply.Question, Answer: s.answer, Ns: s.authority, Compress: true}
	msg, err := m.Pack()
	if err != nil {
		return err
	}
	begin := wire.HeaderSize + len(q.Name) + 4
	if len(msg) < begin || string(msg[wire.HeaderSize:wire.HeaderSize+len(q.Name)]) != string(q.Name) {
		return errPacked
	}
	for at := begin; at < len(msg); {
		r, ok := wire.ReadRecord(msg, at)
		if !ok {
			return errPacked
		}
		e.ttls = append(e.ttls, uint16(r.Fixed+4-begin))
		at = r.Next
	}
	e.body = append([]byte(nil), msg[begin:]...)
	if len(e.ttls) != e.answers+e.authorities {
		return errPacked
	}
	return nil
}
