package store

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestFold(t *testing.T) {
	version := func(name string, n int) *zone.RecordSet {
		return &zone.RecordSet{Name: dnsname.MustParse(name), Type: rr.TypeA, Version: n}
	}
	a1, a2, a3, b1 := version("a.", 1), version("a.", 2), version("a.", 3), version("b.", 1)
	damage := errors.New("damaged")
	tests := []struct {
		name    string
		changes []Change // newest first
		want    Change
	}{
		{"one", []Change{{Commit: 7, From: 1, To: 2, Sets: []SetChange{{nil, a1}}}},
			Change{Commit: 7, From: 1, To: 2, Sets: []SetChange{{nil, a1}}}},
		{"a set that changes twice, and one that comes and goes",
			[]Change{
				{Commit: 9, Group: 7, From: 3, To: 4, Note: "last", Sets: []SetChange{{a2, a3}, {b1, nil}}},
				{Commit: 8, Group: 7, From: 2, To: 3, Sets: []SetChange{{nil, b1}}},
				{Commit: 7, Group: 7, From: 1, To: 2, Sets: []SetChange{{a1, a2}}}},
			Change{Commit: 9, Group: 7, From: 1, To: 4, Note: "last", Sets: []SetChange{{a1, a3}}}},
		{"a zone's TTL",
			[]Change{{ZoneTTL: 30, Retimed: true, TTLFrom: 20}, {ZoneTTL: 20, Retimed: true, TTLFrom: 10}, {ZoneTTL: 10}},
			Change{ZoneTTL: 30, Retimed: true, TTLFrom: 10}},
		{"a zone's TTL and back",
			[]Change{{ZoneTTL: 10, Retimed: true, TTLFrom: 20}, {ZoneTTL: 20, Retimed: true, TTLFrom: 10}},
			Change{ZoneTTL: 10}},
		{"too large", []Change{{Sets: []SetChange{{nil, a1}}}, {Whole: true}}, Change{Whole: true}},
		{"damaged", []Change{{}, {Whole: true, Damage: damage}}, Change{Whole: true, Damage: damage}},
	}
	for _, tt := range tests {
		diff := cmp.Diff(tt.want, Fold(tt.changes), cmpopts.EquateComparable(dnsname.Name{}), cmpopts.EquateErrors(),
			cmpopts.EquateEmpty())
		if diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
