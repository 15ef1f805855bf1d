package zone_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

func TestMatchSent(t *testing.T) {
	for _, tt := range []struct {
		name string
		data []string
		sent []zone.Sent
		want []zone.Sent
	}{
		{"nothing sent", []string{"a", "b"}, nil, nil},
		{"canonical", []string{"a", "b"}, []zone.Sent{{Data: "a"}, {Data: "b"}}, nil},
		{"no texts: canonical", []string{"a", "b"}, []zone.Sent{}, nil},
		{"another order", []string{"a", "b"}, []zone.Sent{{Data: "b"}, {Data: "a"}}, []zone.Sent{{Data: "b"}, {Data: "a"}}},
		{"a text", []string{"a", "b"}, []zone.Sent{{Data: "a"}, {"b", "B"}}, []zone.Sent{{Data: "a"}, {"b", "B"}}},
		{"a record less", []string{"b"}, []zone.Sent{{Data: "a"}, {"b", "B"}}, []zone.Sent{{"b", "B"}}},
		{"the record with a text less", []string{"a"}, []zone.Sent{{Data: "a"}, {"b", "B"}}, nil},
		{"a record more, in front", []string{"a", "b"}, []zone.Sent{{"b", "B"}}, []zone.Sent{{"b", "B"}, {Data: "a"}}},
		{"a record more, in order", []string{"a", "b"}, []zone.Sent{{Data: "a"}}, nil},
		{"twice", []string{"a"}, []zone.Sent{{"a", "A"}, {"a", "a."}}, []zone.Sent{{"a", "A"}}},
		{"no data", nil, []zone.Sent{{"a", "A"}}, nil},
	} {
		if diff := cmp.Diff(tt.want, zone.MatchSent(tt.data, tt.sent)); diff != "" {
			t.Errorf("%s: MatchSent (-want +got)\n%s", tt.name, diff)
		}
	}
}

func TestTexts(t *testing.T) {
	a, b := "\xc0\x00\x02\x01", "\xc0\x00\x02\x02"
	s := zone.RecordSet{Type: rr.TypeA, Data: []string{a, b}}
	if diff := cmp.Diff([]string{"192.0.2.1", "192.0.2.2"}, s.Texts()); diff != "" {
		t.Errorf("canonical texts (-want +got)\n%s", diff)
	}
	s.Sent = []zone.Sent{{b, "the second"}, {Data: a}}
	if diff := cmp.Diff([]string{"the second", "192.0.2.1"}, s.Texts()); diff != "" {
		t.Errorf("sent texts (-want +got)\n%s", diff)
	}
	if got, want := s.Weight(), 8+len("the second"); got != want {
		t.Errorf("Weight() = %d, want %d", got, want)
	}
}
