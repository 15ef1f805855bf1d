package mailtext

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// Texts returns the texts of TXT records in presentation form. The strings of a record are joined without spaces
// (RFC 7208 §3.3).
func Texts(data []string) (out []string) {
	for _, d := range data {
		wire, err := rr.ParseData(rr.TypeTXT, d)
		if err != nil {
			continue
		}
		var b strings.Builder
		for len(wire) > 0 && int(wire[0]) < len(wire) {
			b.WriteString(wire[1 : 1+int(wire[0])])
			wire = wire[1+int(wire[0]):]
		}
		out = append(out, b.String())
	}
	return out
}

// Exchanger returns the target of an MX record in presentation form.
func Exchanger(data string) (dnsname.Name, bool) {
	wire, err := rr.ParseData(rr.TypeMX, data)
	if err != nil {
		return dnsname.Name{}, false
	}
	return rr.Target(rr.TypeMX, wire)
}

// Property is the content of a CAA record.
type Property struct {
	Flags      byte
	Tag, Value string
}

const typeCAA = rr.Type(257)

// ParseCAA returns the content of a CAA record in presentation form.
func ParseCAA(data string) (p Property, ok bool) {
	wire, err := rr.ParseData(typeCAA, data)
	if err != nil || len(wire) < 2 || int(wire[1])+2 > len(wire) {
		return p, false
	}
	at := 2 + int(wire[1])
	return Property{wire[0], wire[2:at], wire[at:]}, true
}

// Hosts returns the questions of the terms "a" and "mx" whose answer does not depend on the sender. It returns the
// type A for "a", each question once.
func Hosts(terms []Term) (out []iterate.Question) {
	types := map[string]rr.Type{"a": rr.TypeA, "mx": rr.TypeMX}
	for _, t := range terms {
		n, err := dnsname.Parse(t.Domain)
		q := iterate.Question{Name: n, Type: types[t.Name]}
		if q.Type != 0 && err == nil && !HasMacro(t.Domain) && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}
