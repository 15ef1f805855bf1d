package zone

import (
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
)

// maxSet is the largest size of a record set in bytes: one that fits a message of 65,535 bytes with the longest
// question and our OPT. A larger one could never be answered, only truncated over and over.
const maxSet = 65000

func size(data []string) int {
	n := 0
	for _, d := range data {
		n += recordHead + len(d)
	}
	return n
}

// Check returns an error when the sets of one name cannot coexist in the zone of the given apex. Callers check the
// state after a whole batch, so a batch may turn a CNAME into an A.
func Check(apex, name dnsname.Name, sets []RecordSet) error {
	if !name.IsIn(apex) {
		return placement("%s is not in zone %s", name, apex)
	}
	var cname, dname, others, alias, addresses int
	for _, s := range sets {
		if !s.Type.IsData() {
			return placement("%s is not a type of record that a zone can hold", s.Type)
		}
		if n := size(s.Data); n > maxSet {
			return placement("%d records of type %s at %s take %d bytes; a message has room for %d",
				len(s.Data), s.Type, name, n, maxSet)
		}
		switch s.Type {
		case rr.TypeSOA:
			if name != apex {
				return placement("SOA belongs at the apex %s, not at %s", apex, name)
			}
			if len(s.Data) != 1 {
				return placement("zone %s must have exactly one SOA record", apex)
			}
			others++
		case rr.TypeCNAME:
			cname = max(1, len(s.Data))
		case rr.TypeDNAME:
			dname = len(s.Data)
			others++
		case rr.TypeALIAS:
			alias = max(1, len(s.Data))
			others++
		case rr.TypeA, rr.TypeAAAA:
			if !s.Hidden {
				addresses++
			}
			others++
		case rr.TypeRRSIG, rr.TypeNSEC: // RFC 4034 §2.5: they may coexist with a CNAME
		default:
			others++
		}
	}
	switch {
	case cname > 0 && name == apex:
		return placement("a CNAME cannot exist at the apex %s, which has SOA and NS records", apex)
	case cname > 0 && others > 0:
		return placement("a CNAME cannot coexist with other records at %s", name) // RFC 1034 §3.6.2
	case cname > 1:
		return placement("%s can have only one CNAME record", name) // RFC 2181 §10.1
	case alias > 0 && addresses > 0:
		return placement("an ALIAS cannot coexist with A or AAAA records at %s: it creates them", name)
	case alias > 1:
		return placement("%s can have only one ALIAS record", name)
	case dname > 1:
		return placement("%s can have only one DNAME record", name) // RFC 6672 §2.4
	}
	return nil
}

// CheckOverlay returns an error when the sets of one name cannot be in an overlay. An overlay owns single names, so
// it has no zone cut: neither its own apex nor a delegation.
func CheckOverlay(name dnsname.Name, sets []RecordSet) error {
	for _, s := range sets {
		switch s.Type {
		case rr.TypeSOA, rr.TypeNS, rr.TypeDNAME, rr.TypeDS:
			return placement("an overlay cannot hold %s at %s", s.Type, name)
		}
	}
	return nil
}

// CheckApex returns an error unless the sets of the apex include one SOA record and an NS record, which a served zone
// needs.
func CheckApex(apex dnsname.Name, sets []RecordSet) error {
	var soa, ns bool
	for _, s := range sets {
		soa = soa || s.Type == rr.TypeSOA && len(s.Data) == 1
		ns = ns || s.Type == rr.TypeNS && len(s.Data) > 0
	}
	if !soa {
		return placement("zone %s has no SOA record", apex)
	}
	if !ns {
		return placement("zone %s has no NS record at its apex", apex)
	}
	return nil
}
