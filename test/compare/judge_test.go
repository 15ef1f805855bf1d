package compare

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// answered is a question with the replies of all peers.
type answered struct {
	question
	peers []string // names, in the order of replies
	reply []reply
}

// agreed reports whether all peers gave the same reply.
func (a answered) agreed() bool {
	for _, r := range a.reply[1:] {
		if r != a.reply[0] {
			return false
		}
	}
	return true
}

// exception is a difference from all peers that is right, and its reason.
type exception struct {
	reason  string
	applies func(answered) bool
	accepts func(got reply, a answered) bool
}

// exceptions is the complete list. All other replies must equal that of a peer.
var exceptions = []exception{
	{
		reason: "RFC 8482 §4.1, §4.2: ANY over a name with data may be answered by any one of its RRsets, or by a HINFO",
		applies: func(a answered) bool {
			return a.qtype == dns.TypeANY && slices.ContainsFunc(a.reply, func(r reply) bool { return r.answer != "" })
		},
		accepts: acceptANY,
	},
	{
		reason: "RFC 2181 §5: a record set has no duplicates; " +
			"a CNAME that leads to itself is in our answer once, in theirs twice",
		applies: func(a answered) bool {
			return slices.ContainsFunc(a.reply, func(r reply) bool { return once(r.answer) != r.answer })
		},
		accepts: func(got reply, a answered) bool {
			return slices.ContainsFunc(a.reply, func(r reply) bool {
				r.answer = once(r.answer)
				return r == got
			})
		},
	},
}

// once returns a sorted answer without repeated lines.
func once(answer string) string {
	return strings.Join(slices.Compact(strings.Split(answer, "\n")), "\n")
}

// acceptANY accepts a non-empty part of the peers' answers with their RCODE and AA bit, or the HINFO of RFC 8482.
func acceptANY(got reply, a answered) bool {
	known := map[string]bool{}
	for _, r := range a.reply {
		for line := range strings.SplitSeq(r.answer, "\n") {
			known[line] = true
		}
	}
	for line := range strings.SplitSeq(got.answer, "\n") {
		hinfo := strings.Contains(line, "\tHINFO\t\"RFC8482\"")
		if line == "" || !known[line] && !hinfo {
			return false
		}
	}
	return slices.ContainsFunc(a.reply, func(r reply) bool {
		return r.rcode == got.rcode && r.aa == got.aa
	})
}

// judge returns what is wrong with our reply, or "". When all peers agree, only their reply is right. When they
// differ, the reply of any peer is.
func judge(got reply, a answered) string {
	if slices.Contains(a.reply, got) {
		return ""
	}
	for _, e := range exceptions {
		if e.applies(a) && e.accepts(got, a) {
			return ""
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: got %s\n", a.question, got)
	if a.agreed() {
		fmt.Fprintf(&b, "want, as all of %v: %s\n", a.peers, a.reply[0])
		return b.String()
	}
	for i, r := range a.reply {
		fmt.Fprintf(&b, "want, as %s: %s\n", a.peers[i], r)
	}
	return b.String()
}

func TestJudge(t *testing.T) {
	one := reply{rcode: "NOERROR", aa: true, answer: "a.test.\t60\tIN\tA\t192.0.2.1"}
	otherTTL := one
	otherTTL.answer = "a.test.\t61\tIN\tA\t192.0.2.1"
	noAA := one
	noAA.aa = false
	two := one
	two.answer += "\na.test.\t60\tIN\tTXT\t\"x\""
	hinfo := one
	hinfo.answer = "a.test.\t60\tIN\tHINFO\t\"RFC8482\" \"\""
	empty := reply{rcode: "NOERROR", aa: true}
	tests := []struct {
		name  string
		qtype uint16
		got   reply
		peers []reply
		right bool
	}{
		{"as all", dns.TypeA, one, []reply{one, one}, true},
		{"other TTL", dns.TypeA, otherTTL, []reply{one, one}, false},
		{"other AA", dns.TypeA, noAA, []reply{one, one}, false},
		{"as one of two", dns.TypeA, otherTTL, []reply{one, otherTTL}, true},
		{"as none of two", dns.TypeA, noAA, []reply{one, otherTTL}, false},
		{"part of ANY", dns.TypeANY, one, []reply{two, two}, true},
		{"HINFO for ANY", dns.TypeANY, hinfo, []reply{two, two}, true},
		{"empty ANY", dns.TypeANY, empty, []reply{two, two}, false},
		{"foreign ANY", dns.TypeANY, otherTTL, []reply{two, two}, false},
		{"part of A", dns.TypeA, one, []reply{two, two}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := answered{question: question{"a.test.", tt.qtype}, peers: []string{"x", "y"}, reply: tt.peers}
			if wrong := judge(tt.got, a); (wrong == "") != tt.right {
				t.Errorf("judge = %q, want right = %v", wrong, tt.right)
			}
		})
	}
}
