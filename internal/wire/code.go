package wire

import "strconv"

// RCODEs (RFC 1035 §4.1.1, RFC 2136 §2.2, RFC 6891 §9).
const (
	RcodeNoError  = 0
	RcodeFormErr  = 1
	RcodeServFail = 2
	RcodeNXDomain = 3
	RcodeNotImp   = 4
	RcodeRefused  = 5
	RcodeYXDomain = 6
	RcodeYXRRSet  = 7
	RcodeNXRRSet  = 8
	RcodeNotAuth  = 9
	RcodeNotZone  = 10
	RcodeBadVers  = 16
)

// rcodes has the names of the IANA registry. BADVERS has the same number as BADSIG in a TSIG record.
var rcodes = [...]string{"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED", "YXDOMAIN", "YXRRSET",
	"NXRRSET", "NOTAUTH", "NOTZONE", "DSOTYPENI",
	16: "BADVERS", "BADKEY", "BADTIME", "BADMODE", "BADNAME", "BADALG", "BADTRUNC", "BADCOOKIE"}

// RcodeText returns the name of an RCODE, or RCODE and its number (RFC 3597 has the same form for types).
func RcodeText(rcode int) string {
	if rcode >= 0 && rcode < len(rcodes) && rcodes[rcode] != "" {
		return rcodes[rcode]
	}
	return "RCODE" + strconv.Itoa(rcode)
}

// OptionEDE is the EDNS option of an extended error (RFC 8914 §2).
const OptionEDE = 15

// INFO-CODEs of extended errors (RFC 8914 §4 and its registry).
const (
	EDENone             = -1 // no extended error
	EDEOther            = 0
	EDEStale            = 3
	EDEForged           = 4 // the resolver changed the answer, because of its policy
	EDEBogus            = 6
	EDENotReady         = 14
	EDEBlocked          = 15 // by the operator
	EDECensored         = 16 // by an order from outside
	EDEFiltered         = 17 // at the request of the client
	EDEProhibited       = 18
	EDEStaleNXDomain    = 19
	EDENotAuthoritative = 20
	EDENotSupported     = 21
	EDENoReachable      = 22 // no server replied, or all refused
	EDENetworkError     = 23 // a server could not be reached, or there are too many queries
	EDESynthesized      = 29
)
