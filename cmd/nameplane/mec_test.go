package main

import (
	"strings"
	"testing"
)

// TestSilencedCells checks that a table shows which zone silences a rule.
func TestSilencedCells(t *testing.T) {
	r := ruleReply{ID: "one", State: "ACTIVE", Domain: "a.example.com", Addr: "192.0.2.1"}
	if got := strings.Join(r.cells(), ","); got != "one,ACTIVE,a.example.com,,192.0.2.1" {
		t.Errorf("cells = %s", got)
	}
	r.Silenced = "example.com."
	if got := r.cells()[1]; got != "ACTIVE (silenced by example.com.)" {
		t.Errorf("state = %s", got)
	}
}
