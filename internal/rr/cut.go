package rr

import (
	"reflect"

	"github.com/miekg/dns"
)

// IsCut reports whether a record of the library lacks data that its type requires: all data, or a name. The library
// reads such records, because records without data are part of updates (RFC 2136 §2.5). It would pack them into a
// form that no other program can read.
func IsCut(r dns.RR) bool {
	switch r.(type) {
	case *dns.RFC3597, *dns.NULL, *dns.APL:
		return false
	}
	return r.Header().Rdlength == 0 || lacksName(reflect.ValueOf(r).Elem())
}

func lacksName(data reflect.Value) bool {
	for i := range data.NumField() {
		switch field := data.Type().Field(i); {
		case field.Anonymous:
			if lacksName(data.Field(i)) {
				return true
			}
		case field.Tag.Get("dns") == "domain-name", field.Tag.Get("dns") == "cdomain-name":
			if field.Type.Kind() == reflect.String && data.Field(i).Len() == 0 {
				return true
			}
		}
	}
	return false
}
