package designate

import (
	"testing"
	"time"
)

// TestAppendRecordSet compares with encoding/json, which says what is right.
func TestAppendRecordSet(t *testing.T) {
	ttl, empty, odd := uint32(0), "", "a \"b\" \\ <c> & \x00\x1f\x7f \u00e9 \u2028 \xff \U0001f600"
	at := timestamp(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600)))
	tests := []struct {
		name string
		set  wireRecordSet
	}{
		{"zero", wireRecordSet{}},
		{"usual", wireRecordSet{ID: "1", ZoneID: "2", ZoneName: "example.org.", ProjectID: "p", Name: "www.example.org.", Type: "A",
			Records: []string{"192.0.2.1", "192.0.2.2"}, Status: statusActive, Action: actionNone, Version: 3, CreatedAt: at, UpdatedAt: at,
			Links: &links{Self: "http://dns.test/v2/zones/2/recordsets/1"}}},
		{"pointers", wireRecordSet{Records: []string{}, TTL: &ttl, Description: &empty}},
		{"an ALIAS", wireRecordSet{Records: []string{}, Alias: &aliasState{Target: odd, Chain: []string{odd}, Since: at}, Links: &links{Self: odd}}},
		{"odd texts", wireRecordSet{ID: odd, ZoneID: odd, ZoneName: odd, ProjectID: odd, Name: odd, Type: odd, Records: []string{odd, "", odd},
			Description: &odd, Status: odd, Action: odd, Version: -1, Links: &links{Self: odd}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want, err := marshalAny(tt.set)
			if err != nil {
				t.Fatal(err)
			}
			got, err := marshal(tt.set)
			if err != nil || string(got) != string(want) {
				t.Errorf("marshal = %v\n%s, want\n%s", err, got, want)
			}
		})
	}
	all := changesReply{zone: map[string]string{"name": odd}}
	sets := make([]wireRecordSet, 0, len(tests))
	for _, tt := range tests {
		sets = append(sets, tt.set)
		all.sets = sets
		want, err := marshalAny(map[string]any{"recordsets": all.sets, "zone": all.zone})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := marshal(all); err != nil || string(got) != string(want) {
			t.Errorf("marshal of %d sets = %v\n%s, want\n%s", len(sets), err, got, want)
		}
	}
}

// BenchmarkMarshalRecordSet is one reply, in both ways.
func BenchmarkMarshalRecordSet(b *testing.B) {
	at := timestamp(time.Unix(1700000000, 0))
	set := wireRecordSet{ID: "00000000-0000-8000-8000-000000000000", ZoneID: "00000000-0000-4000-8000-000000000000", ZoneName: "example.org.",
		ProjectID: "p", Name: "www.example.org.", Type: "A", Records: []string{"192.0.2.1"}, Status: statusActive, Action: actionNone,
		Version: 3, CreatedAt: at, UpdatedAt: at, Links: &links{Self: "http://dns.test/v2/zones/2/recordsets/1"}}
	for _, way := range []struct {
		name string
		fn   func(any) ([]byte, error)
	}{{"ours", marshal}, {"encoding/json", marshalAny}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.fn(set); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
