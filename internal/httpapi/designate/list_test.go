package designate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestListQuery checks limits, markers, sort keys and filters in queries of lists.
func TestListQuery(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	tests := []struct{ query, kind string }{
		{"limit=0", "invalid_limit"}, {"limit=-1", "invalid_limit"}, {"limit=x", "invalid_limit"},
		{"limit=", "invalid_limit"},
		{"limit=max", ""}, {"limit=5000", ""}, {"limit=1", ""},
		{"marker=x", "invalid_marker"}, {"marker=00000000-0000-4000-8000-000000000000", "marker_not_found"},
		{"sort_key=colour", "invalid_sort_key"}, {"sort_key=name", ""}, {"sort_dir=up", "invalid_sort_dir"},
		{"sort_dir=DESC", ""},
		{"colour=red", "bad_request"}, {"name=a&name=b", "bad_request"}, {"name=a", ""},
		{"ttl=60&status=ACTIVE&type=PRIMARY", ""},
		{"all_projects=false", ""}, {"edit_managed_records=false", ""},
		{"name=a;b", "bad_request"}, {"name=%zz", "bad_request"},
	}
	for _, path := range []string{"/v2/zones", z + "/recordsets", "/v2/recordsets"} {
		for _, tt := range tests {
			res := s.do(request{as: alice, call: "GET " + path + "?" + tt.query})
			if tt.kind == "" && res.Code != 200 || tt.kind != "" && (res.Code != 400 || res.str("type") != tt.kind) {
				t.Errorf("GET %s?%s = %d %s, want %q", path, tt.query, res.Code, res.Body, tt.kind)
			}
		}
	}
	for path, key := range map[string]string{"/v2/recordsets": "records", "/v2/zones": "email"} {
		s.as(alice, 400, "GET "+path+"?sort_key="+key, "")
	}
	s.as(alice, 200, "GET "+z+"/recordsets?sort_key=records", "")
	res := s.as(alice, 200, "GET /v2/zones", "", "OpenStack-DNS-Hide-Counts: true")
	if metadata, ok := res.json["metadata"].(map[string]any); !ok || len(metadata) > 0 {
		t.Errorf("counts are not hidden: %s", res.Body)
	}
}

// follow reads a list by its next links and returns the values of a field on each page.
func (s *server) follow(call, list, field string) [][]string {
	s.t.Helper()
	var pages [][]string
	for {
		res := s.as(alice, 200, "GET "+call, "")
		pages = append(pages, res.items(list, field))
		next, ok := res.json["links"].(map[string]any)["next"].(string)
		if !ok {
			return pages
		}
		if len(pages) > 100 {
			s.t.Fatal("the list does not end")
		}
		call = strings.TrimPrefix(next, "http://dns.test")
	}
}

// TestPaging checks that there is no next link when exactly limit items are left, and that every order, in both
// directions, has all items.
func TestPaging(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	for i := range 4 {
		s.set(z, fmt.Sprintf("n%d.example.org.", 9-i), "A", fmt.Sprintf("192.0.2.%d", i))
	}
	if pages := s.follow(z+"/recordsets?limit=3", "recordsets", "name"); len(pages) != 2 || len(pages[0]) != 3 ||
		len(pages[1]) != 3 {
		t.Errorf("6 sets in pages of 3: %q", pages)
	}
	s.zone("example.net.")
	if pages := s.follow("/v2/zones?limit=2", "zones", "name"); len(pages) != 1 {
		t.Errorf("2 zones in pages of 2: %q", pages)
	}
	if pages := s.follow("/v2/zones?limit=1", "zones", "name"); len(pages) != 2 {
		t.Errorf("2 zones in pages of 1: %q", pages)
	}
	s.as(alice, 202, "DELETE "+s.zonePath("example.net."), "")
	for _, path := range []string{z + "/recordsets", "/v2/recordsets"} {
		for _, key := range []string{"created_at", "updated_at", "zone_id", "tenant_id", "name", "type", "ttl"} {
			up := slices.Concat(s.follow(path+"?limit=2&sort_key="+key, "recordsets", "id")...)
			down := slices.Concat(s.follow(path+"?limit=4&sort_dir=desc&sort_key="+key, "recordsets", "id")...)
			slices.Reverse(down)
			if diff := cmp.Diff(up, down); diff != "" || len(up) != 6 {
				t.Errorf("%s by %s: %d sets, up and down differ: %s", path, key, len(up), diff)
			}
		}
	}
	names := slices.Concat(s.follow(z+"/recordsets?sort_key=name&type=A&limit=2", "recordsets", "name")...)
	if diff := cmp.Diff([]string{"n6.example.org.", "n7.example.org.", "n8.example.org.", "n9.example.org."},
		names); diff != "" {
		t.Error(diff)
	}
}

// TestPagingWhileChanging creates and deletes items between two pages.
func TestPagingWhileChanging(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	var sets []string
	for i := range 5 {
		sets = append(sets, s.set(z, fmt.Sprintf("n%d.example.org.", i), "A", "192.0.2.1"))
	}
	first := s.as(alice, 200, "GET "+z+"/recordsets?limit=3&sort_key=name", "")
	next := strings.TrimPrefix(first.json["links"].(map[string]any)["next"].(string), "http://dns.test")
	s.set(z, "a0.example.org.", "A", "192.0.2.1") // before the marker
	s.set(z, "n00.example.org.", "A", "192.0.2.1")
	got := s.as(alice, 200, "GET "+next, "").items("recordsets", "name")
	if diff := cmp.Diff([]string{"n00.example.org.", "n1.example.org.", "n2.example.org."}, got); diff != "" {
		t.Error(diff)
	}
	s.as(alice, 202, "DELETE "+sets[0], "") // the marker
	if res := s.as(alice, 400, "GET "+next, ""); res.str("type") != "marker_not_found" {
		t.Error(res.Body)
	}
}

// TestFilters checks the filters of lists.
func TestFilters(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.set(z, "*.example.org.", "A", "10.1.0.1")
	s.set(z, "www.example.org.", "A", "10.1.2.3", "192.0.2.1")
	s.set(z, "www.example.org.", "TXT", `"some text"`)
	s.set(z, "mail.sub.example.org.", "A", "192.0.2.2")
	s.as(alice, 202, "POST "+z+"/recordsets",
		`{"name":"ttl.example.org.","type":"A","ttl":77,"records":["192.0.2.7"],"description":"the one"}`)
	tests := []struct {
		query string
		want  []string
	}{
		{"name=www.example.org.", []string{"www.example.org.", "www.example.org."}},
		{"name=WWW.example.org.&type=TXT", []string{"www.example.org."}},
		{"name=www.example.org", []string{}},
		{"name=*.example.org.&type=A", []string{"*.example.org.", "www.example.org.", "mail.sub.example.org.",
			"ttl.example.org."}},
		{`name=\*.example.org.`, []string{"*.example.org."}},
		{"name=*.sub.example.org.", []string{"mail.sub.example.org."}},
		{"name=*ai*", []string{"mail.sub.example.org."}},
		{"name=*&type=SOA", []string{"example.org."}},
		{"data=10.1.*", []string{"*.example.org.", "www.example.org."}},
		{"data=192.0.2.2", []string{"mail.sub.example.org."}},
		{"data=*Some*&type=txt", []string{"www.example.org."}},
		{"ttl=77", []string{"ttl.example.org."}},
		{"description=the*", []string{"ttl.example.org."}},
		{"status=ACTIVE&type=TXT", []string{"www.example.org."}},
		{"status=ERROR", []string{}},
	}
	for _, path := range []string{z + "/recordsets", "/v2/recordsets"} {
		for _, tt := range tests {
			res := s.as(alice, 200, "GET "+path+"?"+tt.query, "")
			if diff := cmp.Diff(tt.want, res.items("recordsets", "name")); diff != "" {
				t.Errorf("%s?%s: %s", path, tt.query, diff)
			}
			if got := res.json["metadata"].(map[string]any)["total_count"]; got != float64(len(tt.want)) {
				t.Errorf("%s?%s counts %v of %d", path, tt.query, got, len(tt.want))
			}
		}
	}
	s.zone("example.net.")
	for query, want := range map[string][]string{"name=*.net.": {"example.net."}, "name=Example.Net.": {"example.net."},
		"email=host*":    {"example.org.", "example.net."},
		"type=SECONDARY": {}, "sort_key=name": {"example.net.", "example.org."},
		"sort_dir=desc": {"example.net.", "example.org."}} {
		if diff := cmp.Diff(want, s.as(alice, 200, "GET /v2/zones?"+query, "").items("zones", "name")); diff != "" {
			t.Errorf("zones?%s: %s", query, diff)
		}
	}
}

// bulk fills a zone with n record sets.
func (s *server) bulk(name string, n int) string {
	s.t.Helper()
	path := s.zone(name)
	apex := dnsname.MustParse(name)
	err := s.pub.CommitAlone(s.t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		z, err := tx.ZoneByName(apex)
		if err != nil {
			return err
		}
		sets, err := tx.RecordSetsAt(z.ID, apex)
		for i := range n {
			owner, _ := apex.Child(fmt.Sprintf("h%07d", i))
			sets = append(sets, zone.RecordSet{Name: owner, Type: rr.TypeA, Data: []string{"\xc0\x00\x02\x01"}})
		}
		if err != nil {
			return err
		}
		return tx.ReplaceSorted(z.ID, len(sets), slices.Values(sets))
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

// TestLargeLists checks that lists of zones which are too large to sort in memory have the same pages as small ones.
func TestLargeLists(t *testing.T) {
	s := newServer(t, designate.Settings{})
	other := s.zone("aaa.test.")
	z := s.bulk("example.org.", 2_100)
	s.set(other, "late.aaa.test.", "A", "192.0.2.1")
	for _, tt := range []struct {
		path, key string
		want      int
	}{
		{z + "/recordsets", "created_at", 2_102}, {z + "/recordsets", "name", 2_102}, {z + "/recordsets", "type", 2_102},
		{"/v2/recordsets", "created_at", 2_105},
	} {
		up := slices.Concat(s.follow(tt.path+"?limit=max&sort_key="+tt.key, "recordsets", "id")...)
		down := slices.Concat(s.follow(tt.path+"?limit=max&sort_dir=desc&sort_key="+tt.key, "recordsets", "id")...)
		slices.Reverse(down)
		unique := slices.Compact(slices.Sorted(slices.Values(up)))
		if !slices.Equal(up, down) || len(up) != tt.want || len(unique) != tt.want {
			t.Errorf("%s by %s: %d up, %d down, %d unique, want %d", tt.path, tt.key, len(up), len(down), len(unique), tt.want)
		}
	}
	s.zoneOf(bob, "bob.test.")
	if got := s.as(bob, 200, "GET /v2/recordsets", "").items("recordsets", "type"); len(got) != 2 {
		t.Errorf("bob lists %q", got)
	}
	res := s.as(alice, 200, "GET "+z+"/recordsets?name=h0000005.example.org.", "")
	if got := res.items("recordsets", "name"); len(got) != 1 {
		t.Errorf("by name: %q", got)
	}
	if got := s.as(alice, 200, "GET "+z+"/recordsets?type=A&limit=1",
		"").json["metadata"]; fmt.Sprint(got) != "map[total_count:2100]" {
		t.Errorf("count of A = %v", got)
	}
}
