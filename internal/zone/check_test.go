package zone_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestCheckSize checks that a set too large for any message is refused when it is written.
func TestCheckSize(t *testing.T) {
	addresses := func(n int) []string {
		out := make([]string, n)
		for i := range out {
			out[i] = string([]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		}
		return out
	}
	name := dnsname.MustParse("www.example.org.")
	for _, tt := range []struct {
		name string
		typ  rr.Type
		data []string
		ok   bool
	}{
		{"4000 addresses", rr.TypeA, addresses(4000), true},
		{"4100 addresses", rr.TypeA, addresses(4100), false},
		{"more than can be counted", rr.TypeA, addresses(1 << 16), false},
		{"one record of 64 KiB", 65280, []string{strings.Repeat("x", rr.MaxData)}, false},
	} {
		err := zone.Check(apex, name, []zone.RecordSet{{Name: name, Type: tt.typ, Data: tt.data}})
		var placement *zone.PlacementError
		if tt.ok != (err == nil) || err != nil && !errors.As(err, &placement) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestCheckAlias(t *testing.T) {
	apex := dnsname.MustParse("example.org.")
	name := func(s string) string { return dnsname.MustParse(s).Wire() }
	alias := zone.RecordSet{Type: rr.TypeALIAS, Data: []string{name("target.test.")}}
	plain := func(t rr.Type, data string) zone.RecordSet { return zone.RecordSet{Type: t, Data: []string{data}} }
	hidden := zone.RecordSet{Type: rr.TypeA, Data: []string{"\xc0\x00\x02\x01"}, Hidden: true, Managed: true}
	for _, tt := range []struct {
		name string
		sets []zone.RecordSet
		ok   bool
	}{
		{"alone", []zone.RecordSet{alias}, true},
		{"beside what it made", []zone.RecordSet{hidden, alias}, true},
		{"beside MX and TXT", []zone.RecordSet{alias, plain(rr.TypeMX, "\x00\x0a"+name("m.test.")),
			plain(rr.TypeTXT, "\x01x")}, true},
		{"beside A", []zone.RecordSet{plain(rr.TypeA, "\xc0\x00\x02\x01"), alias}, false},
		{"beside AAAA", []zone.RecordSet{alias, plain(rr.TypeAAAA, strings.Repeat("x", 16))}, false},
		{"beside CNAME", []zone.RecordSet{plain(rr.TypeCNAME, name("c.test.")), alias}, false},
		{"two", []zone.RecordSet{{Type: rr.TypeALIAS, Data: []string{name("a.test."), name("b.test.")}}}, false},
	} {
		if err := zone.Check(apex, dnsname.MustParse("www.example.org."), tt.sets); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
