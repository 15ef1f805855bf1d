package zone_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestCheckSize: what no message can carry is refused when it is written, not truncated when it is asked for.
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
