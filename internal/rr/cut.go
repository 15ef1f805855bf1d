package rr

import (
	"reflect"

	"github.com/miekg/dns"
)

// IsCut reports whether a record of the library's lacks data that its type must have: all of them, or a name. The library reads
// such records, as those without data are a part of updates (RFC 2136 §2.5), and packs them again into what nobody else
// can read.
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
