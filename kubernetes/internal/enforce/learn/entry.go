package learn

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/miekg/dns"
)

// Entry is the stored state of one name.
type Entry struct {
	Name     string
	Addrs    []StoredAddress
	Failures int32     // failed lookups since the last successful one
	Degraded Condition // the zero Condition means that none is stored
}

// StoredAddress is an address in the status. Its times have a resolution of one second, like those of the API.
type StoredAddress struct {
	Addr netip.Addr
	TTL  int32
	Last time.Time
}

// Until returns the time at which h ends.
func (h StoredAddress) Until() time.Time { return h.Last.Add(time.Duration(h.TTL) * time.Second) }

// storedUntil returns the stored form of an address that was seen now and is valid until the given time. The API stores
// whole seconds, so the stored end differs from until by up to half a second. An end that is too early is covered by
// Grace. An end that is too late would keep the firewall open after the last client stopped using the address.
func storedUntil(a netip.Addr, until, now time.Time) StoredAddress {
	last := now.Truncate(time.Second)
	left := max(until.Sub(last), 0).Round(time.Second)
	if until.After(now) {
		left = max(left, time.Second)
	}
	return StoredAddress{Addr: a, TTL: int32(left / time.Second), Last: last}
}

// LongestTTL is the largest MaxTTL that Rules may have (RFC 8767 §4: caches cap TTLs at a week or less).
const LongestTTL = 7 * 24 * time.Hour

// Condition is the Degraded condition of a name.
type Condition struct {
	Failed          bool
	Reason, Message string
	Since           time.Time
}

// Stored reports whether c is a condition, as opposed to the zero value.
func (c Condition) Stored() bool { return c.Reason != "" }

// messages maps response codes to the messages that the stock plugin writes.
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

// condition returns the condition after a lookup that ended with rcode. Since does not change when a name fails again
// for the same reason, or succeeds again.
func condition(old Condition, rcode int, now time.Time) Condition {
	c := Condition{Failed: rcode != dns.RcodeSuccess, Since: now.Truncate(time.Second)}
	c.Reason = cmp.Or(dns.RcodeToString[rcode], fmt.Sprintf("RCODE%d", rcode))
	c.Message = cmp.Or(messages[rcode], "Response code "+c.Reason)
	if old.Stored() && old.Failed == c.Failed && (!c.Failed || old.Reason == c.Reason) {
		return old
	}
	return c
}

// expired reports whether all addresses of e have ended.
func (e Entry) expired(now time.Time) bool {
	return !slices.ContainsFunc(e.Addrs, func(h StoredAddress) bool { return h.Until().After(now) })
}

// Has reports whether e contains the address a.
func (e Entry) Has(a netip.Addr) bool { return e.find(a) >= 0 }

func (e Entry) find(a netip.Addr) int {
	return slices.IndexFunc(e.Addrs, func(h StoredAddress) bool { return h.Addr == a })
}

// finder returns a function like find for n lookups. It builds a map only if there are many lookups and many addresses.
// A wildcard's own entry has hundreds of addresses, and is searched for each of hundreds of names with one or two
// addresses each.
func (e Entry) finder(n int) func(netip.Addr) int {
	if n < 16 || len(e.Addrs) < 32 {
		return e.find
	}
	indexes := make(map[netip.Addr]int, len(e.Addrs))
	for i, h := range e.Addrs {
		indexes[h.Addr] = i
	}
	return func(a netip.Addr) int {
		if i, ok := indexes[a]; ok {
			return i
		}
		return -1
	}
}

// covers reports whether e stores all addresses of m for at least as long as clients may use them.
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

// size estimates the number of bytes of e in the stored object. The estimate does not include metadata.managedFields,
// which would be larger than e itself.
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
