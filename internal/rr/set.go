// Package rr holds record sets: the records of one name and type, their data in wire form, and the ways between that
// form and text.
package rr

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// MaxTTL is the largest time to live (RFC 2181 §8).
const MaxTTL = 1<<31 - 1

// MaxData is the largest RDATA a message can carry.
const MaxData = 65535

// Set is a record set (RFC 2181 §5): all records of one name, type and class IN. One TTL, no duplicates, and an
// order that depends on the data alone.
type Set struct {
	Name dnsname.Name
	Type Type
	TTL  uint32
	Data []string // RDATA in uncompressed wire form, sorted and unique
}

// NewSet makes a Set of data in any order; duplicates collapse.
func NewSet(name dnsname.Name, t Type, ttl uint32, data ...string) Set {
	return Set{Name: name, Type: t, TTL: ttl, Data: Normal(t, data)}
}

// Normal returns data sorted in canonical order and without duplicates, as the Data of a Set of type t. Embedded
// names that RFC 4034 §6.2 folds compare without case, and of two spellings the first given stays.
func Normal(t Type, data []string) []string {
	if len(data) < 2 {
		return slices.Clone(data)
	}
	type pair struct{ key, data string }
	pairs := make([]pair, len(data))
	for i, d := range data {
		pairs[i] = pair{DataKey(t, d), d}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	pairs = slices.CompactFunc(pairs, func(a, b pair) bool { return a.key == b.key })
	out := make([]string, len(pairs))
	for i, p := range pairs {
		out[i] = p.data
	}
	return out
}

// Equal reports whether two sets would be answered alike.
func (s Set) Equal(o Set) bool {
	return s.Name == o.Name && s.Type == o.Type && s.TTL == o.TTL && slices.Equal(s.Data, o.Data)
}

// SameData reports whether two RDATA of type t are the same record: embedded names compare without case where
// RFC 4034 §6.2 says so.
func SameData(t Type, a, b string) bool { return DataKey(t, a) == DataKey(t, b) }

// nameAt says at which octet of the RDATA the one embedded domain name begins that closes it, for the types whose
// embedded name compares without case (RFC 4034 §6.2).
func nameAt(t Type) (int, bool) {
	switch t {
	case TypeNS, TypeCNAME, TypePTR, TypeDNAME, TypeALIAS:
		return 0, true
	case TypeMX, TypeKX, TypeAFSDB, TypeRT:
		return 2, true
	case TypeSRV:
		return 6, true
	}
	return 0, false
}

// DataKey is the same for all RDATA of type t that SameData takes for one record.
func DataKey(t Type, data string) string {
	at, ok := nameAt(t)
	if !ok || at > len(data) {
		return data
	}
	return data[:at] + lowerASCII(data[at:])
}

// lowerASCII folds A-Z only: strings.ToLower would read octets as UTF-8.
func lowerASCII(s string) string {
	for i := range len(s) {
		if dnsname.Lower(s[i]) != s[i] {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				b[j] = dnsname.Lower(b[j])
			}
			return string(b)
		}
	}
	return s
}

// Target is the domain name that closes the RDATA of a CNAME, NS, PTR, DNAME, MX or SRV record.
func Target(t Type, data string) (dnsname.Name, bool) {
	at, ok := nameAt(t)
	if !ok || at > len(data) {
		return dnsname.Name{}, false
	}
	n, _, err := dnsname.FromWire([]byte(data[at:]))
	return n, err == nil
}

// Compressible says at which octet the RDATA's closing name begins when that name may be compressed in a message:
// only the types of RFC 1035 may (RFC 3597 §4).
func Compressible(t Type) (int, bool) {
	switch t {
	case TypeNS, TypeCNAME, TypePTR, TypeMX:
		return nameAt(t)
	}
	return 0, false
}
