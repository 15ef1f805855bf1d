package learn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Entry is what is stored of one name.
type Entry struct {
	Name     string
	Addrs    []Held
	Failures int32     // lookups that failed since the last that did not
	Degraded Condition // the zero Condition: none is stored
}

// Held is a stored address. Times are kept to the second, as the API keeps them.
type Held struct {
	Addr netip.Addr
	TTL  int32
	Last time.Time
}

// Until is when h is no longer valid.
func (h Held) Until() time.Time { return h.Last.Add(time.Duration(h.TTL) * time.Second) }

// hold is an address that is valid until a moment, seen now. The API keeps whole seconds, so that is true to half a second. What is
// stored too short is within the grace; what was stored too long would be open for longer than anybody may use it.
func hold(a netip.Addr, until, now time.Time) Held {
	last := now.Truncate(time.Second)
	left := max(until.Sub(last), 0).Round(time.Second)
	if until.After(now) {
		left = max(left, time.Second)
	}
	return Held{Addr: a, TTL: int32(left / time.Second), Last: last}
}

// LongestTTL is the largest MaxTTL that Rules may have (RFC 8767 §4: caches cap at a week or less).
const LongestTTL = 7 * 24 * time.Hour

// Condition is the Degraded condition of a name.
type Condition struct {
	Failed          bool
	Reason, Message string
	Since           time.Time
}

// Stored reports whether c is a condition at all.
func (c Condition) Stored() bool { return c.Reason != "" }

// messages are the words for response codes that readers of the API know.
var messages = map[int]string{
	dns.RcodeSuccess:        "No Error",
	dns.RcodeFormatError:    "Format Error",
	dns.RcodeServerFailure:  "Server Failure",
	dns.RcodeNameError:      "Non-Existent Domain",
	dns.RcodeNotImplemented: "Not Implemented",
	dns.RcodeRefused:        "Query Refused",
	dns.RcodeYXDomain:       "Name Exists when it should not",
	dns.RcodeYXRrset:        "RR Set Exists when it should not",
	dns.RcodeNXRrset:        "RR Set that should exist does not",
	dns.RcodeNotAuth:        "Server Not Authoritative for zone",
	dns.RcodeNotZone:        "Name not contained in zone",
	dns.RcodeBadSig:         "TSIG Signature Failure",
	dns.RcodeBadKey:         "Key not recognized",
	dns.RcodeBadTime:        "Signature out of time window",
	dns.RcodeBadMode:        "Bad TKEY Mode",
	dns.RcodeBadName:        "Duplicate key name",
	dns.RcodeBadAlg:         "Algorithm not supported",
	dns.RcodeBadTrunc:       "Bad Truncation",
	dns.RcodeBadCookie:      "Bad/missing Server Cookie",
}

// condition is the condition after a lookup that ended with rcode. The moment of the last change stays when there is none: a
// failure that goes on for the same reason is no change, and neither is a success after a success.
func condition(old Condition, rcode int, now time.Time) Condition {
	c := Condition{Failed: rcode != dns.RcodeSuccess, Since: now.Truncate(time.Second)}
	c.Reason = cmp.Or(dns.RcodeToString[rcode], fmt.Sprintf("RCODE%d", rcode))
	c.Message = cmp.Or(messages[rcode], "Response code "+c.Reason)
	if old.Stored() && old.Failed == c.Failed && (!c.Failed || old.Reason == c.Reason) {
		return old
	}
	return c
}

// expired reports whether no address of e is valid.
func (e Entry) expired(now time.Time) bool {
	return !slices.ContainsFunc(e.Addrs, func(h Held) bool { return h.Until().After(now) })
}

// Has reports whether a is one of the addresses of e.
func (e Entry) Has(a netip.Addr) bool { return e.find(a) >= 0 }

func (e Entry) find(a netip.Addr) int {
	return slices.IndexFunc(e.Addrs, func(h Held) bool { return h.Addr == a })
}

// finder is find for n addresses: there may be thousands of both. For a few it is not worth a map: the own entry of a wildcard has hundreds,
// and is looked at for each of as many names that have an address or two.
func (e Entry) finder(n int) func(netip.Addr) int {
	if n < 16 || len(e.Addrs) < 32 {
		return e.find
	}
	places := make(map[netip.Addr]int, len(e.Addrs))
	for i, h := range e.Addrs {
		places[h.Addr] = i
	}
	return func(a netip.Addr) int {
		if i, ok := places[a]; ok {
			return i
		}
		return -1
	}
}

// covers reports whether e holds all of addrs for at least as long as they are promised.
func (e Entry) covers(m *Memory, now time.Time) bool {
	find := e.finder(len(m.addrs))
	for a, p := range m.addrs {
		if !p.until.After(now) {
			continue
		}
		if i := find(a); i < 0 || p.until.After(e.Addrs[i].Until().Add(slack)) {
			return false
		}
	}
	return true
}

// size is about how many octets e takes in the stored object, in which nobody records who set its fields (metadata.managedFields,
// which would be more than e).
func (e Entry) size() int {
	n := 260 + len(e.Name)
	for _, h := range e.Addrs {
		n += addrSize(h.Addr)
	}
	return n
}

func addrSize(a netip.Addr) int {
	if a.Is4() {
		return 85
	}
	return 110
}
