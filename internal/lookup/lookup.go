// Package lookup finds the answer to a question in a snapshot of zones, by the steps of RFC 1034 §4.3.2, and writes it
// into a message without allocating.
package lookup

import (
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// Kind says what an answer is. Rate limiting and metrics tell answers apart by it.
type Kind uint8

// The kinds of answers.
const (
	Refused  Kind = iota // no zone of ours holds the name
	Positive             // records of the type that was asked, or a chain of CNAMEs
	NoData               // the name exists, the type does not
	NXDomain             // the name does not exist
	Referral             // the name is in a zone that was delegated
	ServFail             // the zone is ours but has no SOA, so nothing can be said
	YXDomain             // a DNAME made a name that is too long
	numKinds
)

// NumKinds is the number of Kinds.
const NumKinds = int(numKinds)

func (k Kind) String() string {
	return [...]string{"refused", "positive", "nodata", "nxdomain", "referral", "servfail", "yxdomain"}[k]
}

// RCODEs that a lookup gives (RFC 1035 §4.1.1, RFC 2136 §2.2).
const (
	rcodeNoError  = 0
	rcodeServFail = 2
	rcodeNXDomain = 3
	rcodeRefused  = 5
	rcodeYXDomain = 6
)

// maxChain bounds the CNAMEs and DNAMEs followed for one question. Resolvers give up at about this number as well;
// what was collected until then is answered.
const maxChain = 16

// Reply is where an answer goes. The caller sets Msg and Limit; Answer sets the rest.
type Reply struct {
	Msg   []byte // header and question; records are appended in place, within Limit
	Limit int    // most octets Msg may have; what the caller wants to append later is to be taken off. At most cap(Msg)

	Kind          Kind
	Rcode         uint8
	Authoritative bool
	Truncated     bool
	Wildcard      bool // a wildcard gave (part of) the answer
	Answers       int  // records in the three sections
	Authorities   int
	Additionals   int
	Zone          *zone.Nodes // the zone of the question; nil when it is not ours

}

// Question is what is asked: a name in lower-case wire form, root label included, and a type. The same name, in the
// case of the client, stands at octet 12 of the message.
type Question struct {
	Name []byte
	Type rr.Type
}

// Answer looks q up and appends the answer to r.Msg. When the answer does not fit, Truncated is set and no more than
// whole record sets are in it.
func Answer(s *zone.Snapshot, q Question, r *Reply) {
	panic("being written")
}
