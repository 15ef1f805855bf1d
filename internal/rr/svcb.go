package rr

import (
	"slices"

	"github.com/miekg/dns"
)

// MissingKey returns the first key that the parameter "mandatory" of an SVCB or HTTPS record names and that the record
// does not have. Clients ignore a record with such a key (RFC 9460 §8).
func MissingKey(t Type, data string) (key string, missing bool) {
	if t != Type(dns.TypeSVCB) && t != Type(dns.TypeHTTPS) {
		return "", false
	}
	rec, err := unpack(t, data)
	if err != nil {
		return "", false
	}
	var params []dns.SVCBKeyValue
	switch r := rec.(type) {
	case *dns.SVCB:
		params = r.Value
	case *dns.HTTPS:
		params = r.Value
	}
	for _, p := range params {
		mandatory, ok := p.(*dns.SVCBMandatory)
		if !ok {
			continue
		}
		for _, k := range mandatory.Code {
			has := func(p dns.SVCBKeyValue) bool { return p.Key() == k && k != dns.SVCB_MANDATORY }
			if !slices.ContainsFunc(params, has) {
				return k.String(), true
			}
		}
	}
	return "", false
}
