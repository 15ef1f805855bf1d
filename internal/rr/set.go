// Package rr holds record sets: the records of one name and type, with their data in wire form, and its text form.
//
// Start with Set in set.go. ParseData and DataText in text.go convert RDATA between text and wire form.
package rr

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// MaxTTL is the largest time to live (RFC 2181 §8).
const MaxTTL = 1<<31 - 1

// MaxData is the largest RDATA that a message can carry.
const MaxData = 65535

// Set is a record set (RFC 2181 §5): all records of one name, type and class IN. It has one TTL and no duplicates,
// and its order depends only on the data.
type Set struct {
	Name dnsname.Name
	Type Type
	TTL  uint32
	Data []string // RDATA in uncompressed wire form, sorted and unique
}

// NewSet returns a Set of data in any order, without duplicates.
func NewSet(name dnsname.Name, t Type, ttl uint32, data ...string) Set {
	return Set{Name: name, Type: t, TTL: ttl, Data: Normal(t, data)}
}

// Normal returns data in canonical order without duplicates, as the Data of a Set of type t. Embedded names of the
// types in RFC 4034 §6.2 compare without case. Of two spellings, the first stays.
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

// Equal reports whether two sets give the same answer.
func (s Set) Equal(o Set) bool {
	return s.Name == o.Name && s.Type == o.Type && s.TTL == o.TTL && slices.Equal(s.Data, o.Data)
}

// SameData reports whether two RDATA of type t are the same record. Embedded names compare without case for the types
// in RFC 4034 §6.2.
func SameData(t Type, a, b string) bool { return DataKey(t, a) == DataKey(t, b) }

// nameAt returns the offset of the embedded domain name that ends the RDATA, for the types whose embedded name
// compares without case (RFC 4034 §6.2).
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

// DataKey returns the same key for all RDATA of type t that SameData treats as one record.
func DataKey(t Type, data string) string {
	at, ok := nameAt(t)
	if !ok || at > len(data) {
		return data
	}
	return data[:at] + lowerASCII(data[at:])
}

// lowerASCII converts A-Z only: strings.ToLower would read the bytes as UTF-8.
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

// Target returns the domain name that ends the RDATA of a CNAME, NS, PTR, DNAME, MX or SRV record.
func Target(t Type, data string) (dnsname.Name, bool) {
	at, ok := nameAt(t)
	if !ok || at > len(data) {
		return dnsname.Name{}, false
	}
	n, _, err := dnsname.FromWire([]byte(data[at:]))
	return n, err == nil
}

// Compressible returns the offset of the name that ends the RDATA, when a message may compress that name. Only the
// types of RFC 1035 allow that (RFC 3597 §4).
func Compressible(t Type) (int, bool) {
	switch t {
	case TypeNS, TypeCNAME, TypePTR, TypeMX:
		return nameAt(t)
	}
	return 0, false
}
