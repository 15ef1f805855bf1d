package learn_test

import (
	"testing"
)

// TestLongTTL is case 14: a long TTL is stored as it is, up to a week.
func TestLongTTL(t *testing.T) {
	r := newRig(t, "a.example.com.", 1)
	r.sees(0, "a.example.com.", "192.0.2.1/168h")
	r.want("a.example.com. 192.0.2.1/168h0m0s NOERROR")
	r.sees(0, "a.example.com.", "192.0.2.2/10000h")
	r.want("a.example.com. 192.0.2.1/168h0m0s 192.0.2.2/168h0m0s NOERROR")
}
