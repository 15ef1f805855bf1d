package check

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// typeResult is how one server replies to one question.
type typeResult struct {
	question iterate.Question
	answered bool
	class    iterate.Class // of the last reply that is no answer; Truncated also if the retry over TCP got no reply
	lost     int
	tcp      bool // it was asked over TCP
	evidence []int
}

// fails reports whether no query got an answer. One lost packet is not enough. A lossy server, which limits its replies
// or loses packets of other questions too, may drop any query. A truncated reply is complete only over TCP.
func (r typeResult) fails(lossy bool) bool {
	switch {
	case r.answered || r.class == "":
		return false
	case r.class == iterate.Truncated:
		return r.tcp
	}
	return !r.class.Transport() || r.lost >= 2 && !lossy
}

// add records one exchange. A denial without an SOA record is an answer for most resolvers, but not for the keys of a
// zone with a DS.
func (r *typeResult) add(e iterate.Exchange, needsKeys bool) {
	tcp := e.Transport == resolve.TCP.String()
	r.tcp = r.tcp || tcp
	switch {
	case e.Class.Usable(), e.Class == iterate.NoSOA && !(needsKeys && e.Question.Type == typeDNSKEY):
		r.answered = true
	case e.Class.Transport() && tcp && r.class == iterate.Truncated:
	case e.Class.Transport():
		r.lost++
		r.class = e.Class
	default:
		r.class = e.Class
	}
}

// typeResults returns how a server replies to the questions about a zone. DEL04 checks SOA, and SRV05 checks new types.
func typeResults(f *explain.Facts, s explain.Server, needsKeys bool) (out []typeResult) {
	for i, e := range f.Exchanges {
		q := e.Question
		if e.Server != s.Addr || e.Zone != s.Zone || !q.Name.IsIn(s.Zone) || e.Class == iterate.Unknown || !ordinary(q.Type) {
			continue
		}
		at := slices.IndexFunc(out, func(r typeResult) bool { return r.question == q })
		if at < 0 {
			at = len(out)
			out = append(out, typeResult{question: q})
		}
		out[at].evidence = append(out[at].evidence, i)
		out[at].add(e, needsKeys)
	}
	return out
}

// ordinary reports whether SRV07 is about a type.
func ordinary(t rr.Type) bool {
	return t.IsData() && t < firstPrivateType && t != rr.TypeSOA && t != typeHTTPS && t != typeCAA
}

const (
	typeHTTPS        = rr.Type(65)
	typeCAA          = rr.Type(257)
	firstPrivateType = rr.Type(65280) // RFC 6895 §3.1; probes use it
)

// failures describes the replies to a type that a server does not answer.
var failures = map[iterate.Class]string{
	iterate.LameRefused:  "replies REFUSED",
	iterate.LameServfail: "replies SERVFAIL",
	iterate.LameNotAuth:  "is not authoritative",
	iterate.Recursed:     "replies from a cache",
	iterate.Upward:       "refers to the root or a parent zone",
	iterate.NotImp:       "replies NOTIMP",
	iterate.FormErr:      "replies FORMERR",
	iterate.NoSOA:        "denies it without an SOA record",
	iterate.Truncated:    "truncates its reply, and does not complete it over TCP,",
	iterate.Timeout:      "does not reply",
	iterate.Unreachable:  "cannot be reached",
}

// everyType is check SRV07: Every nameserver answers for every type.
func everyType(f *explain.Facts) []explain.Finding {
	return perZone(f, func(z iterate.Zone) (out []explain.Finding) {
		secured, ok := securedZone(f, z.Name)
		// Validating resolvers ask for the keys only if there is a DS that they can use.
		needsKeys := ok && len(secured.DS) > 0 && secured.State != secure.Insecure
		results := map[netip.Addr][]typeResult{}
		failing := map[iterate.Question]int{}
		for _, s := range listed(f, z.Name) {
			if !s.Class.Usable() || results[s.Addr] != nil { // DEL04 and DEL05 report it
				continue
			}
			results[s.Addr] = failed(s, typeResults(f, s, needsKeys))
			for _, r := range results[s.Addr] {
				failing[r.question]++
			}
		}
		for _, s := range listed(f, z.Name) {
			vital := func(q iterate.Question) bool {
				return failing[q] == len(results) && (needsKeys && q.Type == typeDNSKEY || wanted(f, z, q))
			}
			out = append(out, failingTypes(f, z, s, results[s.Addr], vital)...)
		}
		switch {
		case len(out) > 0:
			return out
		case len(results) == 0:
			return nil
		}
		return pass(text(z.Name), "All servers of %s that reply answer for every type that was queried.", text(z.Name))
	})
}

// failed returns the results of a server that are failures. It is not nil.
func failed(s explain.Server, results []typeResult) []typeResult {
	lossy := s.Limits.Fact == explain.Yes ||
		slices.ContainsFunc(results, func(r typeResult) bool { return r.answered && r.lost > 0 })
	return only(append([]typeResult{}, results...), func(r typeResult) bool { return r.fails(lossy) })
}

// usualTypes are the types that users and mail servers ask for.
var usualTypes = []rr.Type{rr.TypeA, rr.TypeAAAA, rr.TypeMX, rr.TypeTXT}

// wanted reports whether users miss the records: those that were requested, and the usual ones at the apex of the zone
// and at the names of the chain.
func wanted(f *explain.Facts, z iterate.Zone, q iterate.Question) bool {
	return slices.Contains(f.Types, q.Type) ||
		slices.Contains(usualTypes, q.Type) && (q.Name == z.Name || slices.Contains(chainNames(f), q.Name))
}

// failingTypes returns one finding for each kind of failure of a server. It is critical if vital is true for one of the
// questions.
func failingTypes(f *explain.Facts, z iterate.Zone, s explain.Server, results []typeResult,
	vital func(iterate.Question) bool) (out []explain.Finding) {
	var order []string
	byReply := map[string]*explain.Finding{}
	asked := map[string][]string{}
	for _, r := range results {
		reply := failures[r.class]
		if reply == "" {
			reply = "sends a reply that cannot be used"
		}
		x := byReply[reply]
		if x == nil {
			first := fail(explain.Error, actorFor(f, z.Name, explain.DNSHost), server(s), "")
			x = &first
			byReply[reply] = x
			order = append(order, reply)
		}
		asked[reply] = append(asked[reply], question(r.question))
		x.Evidence = append(x.Evidence, r.evidence...)
		if vital(r.question) {
			x.Severity = explain.Critical
		}
	}
	for _, reply := range order {
		x := byReply[reply]
		x.Words = fmt.Sprintf("%s, a server of %s, %s when it is asked for %s; it answers other queries.", server(s),
			text(z.Name), reply, words.Some(asked[reply]))
		out = append(out, *x)
	}
	return out
}
