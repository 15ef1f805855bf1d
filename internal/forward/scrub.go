package forward

import (
	"errors"
	"slices"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/wire"
)

// newEntry builds an entry from the reply of an upstream. It returns nil if the reply is no answer, with an extended
// error if there is one.
//
// It uses only the records that answer the question. These are the chain of CNAMEs from the name in the question, and
// the records at its end or the SOA that denies them. With DO it also uses their DNSSEC records. Any other record, even
// if well meant, would be an unverified claim about names that were not in the question.
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

// extendedError returns the first extended error of a reply.
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

// scrubber extracts the answer from a reply.
type scrubber struct {
	reply *dns.Msg
	want  uint16
	do    bool

	sets      map[rrsetKey][]dns.RR // record sets of the answer section
	dnames    []*dns.DNAME
	cur       string // current end of the chain
	found     bool   // records of the requested type were found
	denied    bool   // the SOA that denies them was found
	signers   []string
	answer    []dns.RR
	authority []dns.RR
	life      time.Duration
}

// rrsetKey identifies a record set of class IN.
type rrsetKey struct {
	owner string // lower case
	t     uint16
}

// index indexes the answer section once. A zone owner can produce a reply with a long chain and thousands of records. A
// scan of all records for each step of the chain would cost us much work for one query.
func (s *scrubber) index() {
	s.sets = make(map[rrsetKey][]dns.RR)
	var last, lower string // most owners are the same as the previous one
	for _, r := range s.reply.Answer {
		h := r.Header()
		if h.Class != wire.ClassIN {
			continue
		}
		if h.Name != last || lower == "" {
			last, lower = h.Name, dns.CanonicalName(h.Name)
		}
		at := rrsetKey{lower, h.Rrtype}
		s.sets[at] = append(s.sets[at], r)
		if d, ok := r.(*dns.DNAME); ok {
			s.dnames = append(s.dnames, d)
		}
	}
}

// follow walks from the name in the question to the records at the end of the chain. It adds them to the answer in this
// order, which stub resolvers expect.
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
			return // a loop; its CNAMEs are the answer
		}
		s.cur = next
	}
}

// take adds the records of a name and type to the answer, with their signatures, and returns their number. It uses only
// one CNAME.
func (s *scrubber) take(owner string, t uint16) int {
	all := s.sets[rrsetKey{dns.CanonicalName(owner), t}]
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
	for _, r := range s.sets[rrsetKey{dns.CanonicalName(owner), dns.TypeRRSIG}] {
		if sig, ok := r.(*dns.RRSIG); ok && sig.TypeCovered == t {
			s.put(r, owner)
			s.addSigner(sig.SignerName)
		}
	}
}

// addSigner adds a zone that the answer is from.
func (s *scrubber) addSigner(zone string) {
	if !slices.Contains(s.signers, zone) {
		s.signers = append(s.signers, zone)
	}
}

// takeDNAME adds the DNAME from which the CNAME of the current name was synthesized (RFC 6672 §3.1). It may be in the
// answer already, for an earlier name of the chain.
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

// put appends a record to the answer, with the spelling of its owner that the message already has.
func (s *scrubber) put(r dns.RR, owner string) {
	r.Header().Name = owner
	s.limitTTL(r, maxTTL)
	s.answer = append(s.answer, r)
}

// limitTTL limits the TTL of a record to a ceiling, and the lifetime of the answer to that TTL.
func (s *scrubber) limitTTL(r dns.RR, ceiling time.Duration) {
	h := r.Header()
	if h.Ttl > 1<<31-1 {
		h.Ttl = 0 // RFC 2181 §8
	}
	ttl := min(time.Duration(h.Ttl)*time.Second, ceiling)
	h.Ttl = uint32(ttl / time.Second)
	s.life = min(s.life, ttl)
}

// negative adds the SOA that denies, if nothing was found, and the proofs for it or for a wildcard.
func (s *scrubber) negative() {
	if !s.found {
		for _, r := range s.reply.Ns {
			soa, ok := r.(*dns.SOA)
			if ok && soa.Hdr.Class == wire.ClassIN && dns.IsSubDomain(soa.Hdr.Name, s.cur) {
				// RFC 2308 §5: the lesser of the SOA's TTL and its MINIMUM.
				soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
				s.limitTTL(soa, maxNegative)
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
			s.limitTTL(r, maxTTL)
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

// isAnswer reports whether the reply is an answer, and not a referral or nonsense. It also sets the lifetime of a
// denial without an SOA to 0, so that it is not cached (RFC 2308 §5).
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
	// With NS records the reply is a referral: this server does not resolve for us.
	refers := slices.ContainsFunc(s.reply.Ns, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeNS })
	return !refers && s.reply.RecursionAvailable
}

func isBelow(name, zone string) bool {
	return dns.IsSubDomain(zone, name) && dns.CountLabel(name) > dns.CountLabel(zone)
}

var errPacked = errors.New("the packed answer is malformed")

// pack converts the records to wire form, as they follow the question.
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
