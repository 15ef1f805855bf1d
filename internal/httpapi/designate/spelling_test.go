package designate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// done sends a request that must succeed. Which status a success has is the subject of other tests.
func (s *server) done(who httpapi.Caller, call, body string, headers ...string) response {
	s.t.Helper()
	res := s.do(request{who, call, body, headers})
	if res.Code < 200 || res.Code > 299 {
		s.t.Fatalf("%s %s = %d %s", call, body, res.Code, res.Body)
	}
	return res
}

// canonical returns the canonical texts of a record set.
func (s *server) canonical(id string) string {
	s.t.Helper()
	texts, err := publish.Read(s.pub, func(v store.View) (string, error) {
		set, err := v.RecordSetByID(uuid.MustParse(id))
		var out []string
		for _, d := range set.Data {
			out = append(out, rr.DataText(set.Type, d))
		}
		return strings.Join(out, ", "), err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return texts
}

// records returns the records in a reply.
func (r response) records() []string {
	var body struct{ Records []string }
	_ = json.Unmarshal(r.Body.Bytes(), &body)
	return body.Records
}

// TestSentRecords checks that records come back as they were sent, with their order, from every reply that has them.
// A client such as Terraform compares them with its configuration, and must find no difference.
func TestSentRecords(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	fingerprint := strings.Repeat("aB", 20)
	for _, tt := range []struct {
		typ       string
		records   []string
		canonical string
	}{
		{"A", []string{"192.0.2.9", "192.0.2.1"}, "192.0.2.1, 192.0.2.9"},
		{"AAAA", []string{"2001:DB8:0:0::2", "2001:db8::1"}, "2001:db8::1, 2001:db8::2"},
		{"SSHFP", []string{"1 1 " + fingerprint}, "1 1 " + strings.ToUpper(fingerprint)},
		{"CAA", []string{"0 issue ca.example.net"}, `0 issue "ca.example.net"`},
		{"TXT", []string{`é`, `"a"  "b"`, `"\120"`}, `"a" "b", "x", "\195\169"`},
	} {
		body, _ := json.Marshal(map[string]any{"name": "a" + strings.ToLower(tt.typ) + ".example.org.", "type": tt.typ,
			"records": tt.records})
		res := s.done(alice, "POST "+z+"/recordsets", string(body))
		set := z + "/recordsets/" + res.str("id")
		serial := s.as(alice, 200, "GET "+z, "").json["serial"]
		again, _ := json.Marshal(map[string]any{"records": tt.records})
		for _, r := range []response{res, s.as(alice, 200, "GET "+set, ""), s.done(alice, "PUT "+set, string(again))} {
			if diff := cmp.Diff(tt.records, r.records()); diff != "" {
				t.Errorf("%s (-sent +returned)\n%s", tt.typ, diff)
			}
		}
		if got := s.canonical(res.str("id")); got != tt.canonical {
			t.Errorf("%s is stored as %s, want %s", tt.typ, got, tt.canonical)
		}
		if got := s.as(alice, 200, "GET "+set, ""); got.json["version"] != 1.0 {
			t.Errorf("%s: the same records again made version %v", tt.typ, got.json["version"])
		}
		// Other texts of the same records are stored, but are no change for DNS.
		canonical := strings.Split(tt.canonical, ", ")
		other, _ := json.Marshal(map[string]any{"records": canonical})
		s.done(alice, "PUT "+set, string(other))
		if diff := cmp.Diff(canonical, s.as(alice, 200, "GET "+set, "").records()); diff != "" {
			t.Errorf("%s after canonical texts were sent (-want +got)\n%s", tt.typ, diff)
		}
		if got := s.as(alice, 200, "GET "+z, "").json["serial"]; got != serial {
			t.Errorf("%s: another text of the same records changed the serial", tt.typ)
		}
	}
	list := s.as(alice, 200, "GET "+z+"/recordsets?data=*1%20"+strings.ToUpper(fingerprint), "").
		items("recordsets", "name")
	if !slices.Equal(list, []string{"asshfp.example.org."}) {
		t.Errorf("filter by a canonical text = %q", list)
	}
}

// TestSentRecordsStay checks that records keep their texts through changes that do not send records: of the TTL, by a
// dynamic update, and by a rollback.
func TestSentRecordsStay(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	sent := []string{"2001:DB8::2", "2001:db8::1"}
	set := s.set(z, "a.example.org.", "AAAA", sent...)
	plain := s.set(z, "b.example.org.", "AAAA", "2001:db8::1")
	serial, _ := json.Marshal(s.as(alice, 200, "GET "+z, "").json["serial"])
	want := func(what string, records ...string) {
		t.Helper()
		if diff := cmp.Diff(records, s.as(alice, 200, "GET "+set, "").records()); diff != "" {
			t.Errorf("after %s (-want +got)\n%s", what, diff)
		}
	}
	s.done(alice, "PUT "+set, `{"ttl":60}`)
	want("a change of the TTL", sent...)
	err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error { // as package update does
		zone, err := tx.ZoneByName(dnsname.MustParse("example.org."))
		if err != nil {
			return err
		}
		have, err := tx.RecordSet(zone.ID, dnsname.MustParse("a.example.org."), rr.TypeAAAA)
		if err != nil {
			return err
		}
		added, err := rr.ParseData(rr.TypeAAAA, "2001:db8::3")
		have.Data = append(have.Data[1:], added)
		if err == nil {
			_, err = tx.UpdateSet(have)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want("an update", "2001:DB8::2", "2001:db8::3")
	s.done(alice, "PUT "+set, `{"records":["2001:db8::4"]}`)
	s.done(alice, "PUT "+plain, `{"records":["2001:DB8::1","2001:db8::5"]}`)
	s.done(alice, "POST "+z+"/history/rollback", `{"serial":`+string(serial)+`}`)
	want("a rollback", sent...)
	set = plain
	want("a rollback to the canonical text", "2001:db8::1")
}

// TestSpelling checks that names of zones and record sets keep their letter case, and still compare without it.
func TestSpelling(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("Example.ORG.")
	if got := s.as(alice, 200, "GET "+z, "").str("name"); got != "Example.ORG." {
		t.Errorf("the name of the zone is %q", got)
	}
	set := s.set(z, "WWW.example.org.", "A", "192.0.2.1")
	res := s.as(alice, 200, "GET "+set, "")
	if res.str("name") != "WWW.example.org." || res.str("zone_name") != "Example.ORG." {
		t.Errorf("the record set has name %q in zone %q", res.str("name"), res.str("zone_name"))
	}
	s.as(alice, 409, "POST /v2/zones", `{"name":"example.org.","email":"a@example.org"}`)
	s.as(alice, 409, "POST "+z+"/recordsets", `{"name":"www.Example.org.","type":"A","records":["192.0.2.2"]}`)
	for _, name := range []string{"WWW.example.org.", "www.example.org.", "www.EXAMPLE.org."} {
		res := s.done(alice, "PUT "+set, `{"name":"`+name+`","zone_name":"example.ORG.","ttl":60}`)
		if res.str("name") != "WWW.example.org." {
			t.Errorf("PUT with the name %s changed it to %s", name, res.str("name"))
		}
		s.done(alice, "PATCH "+z, `{"name":"`+strings.ToLower(name[4:])+`","ttl":7200}`)
	}
	s.as(alice, 400, "PUT "+set, `{"name":"ftp.example.org."}`)
	for _, filter := range []string{"www.example.org.", "WWW.EXAMPLE.org.", "*.example.ORG."} {
		got := s.as(alice, 200, "GET "+z+"/recordsets?type=A&name="+filter, "").items("recordsets", "name")
		if !slices.Equal(got, []string{"WWW.example.org."}) {
			t.Errorf("filter %s = %q", filter, got)
		}
	}
	batch := s.done(alice, "POST "+z+"/changes", `{"changes":[
		{"action":"upsert","name":"www.example.ORG.","type":"A","records":["192.0.2.3"]},
		{"action":"create","name":"Ftp.example.org.","type":"A","records":["192.0.2.4"]}]}`)
	if got := batch.items("recordsets", "name"); !slices.Equal(got, []string{"WWW.example.org.", "Ftp.example.org."}) {
		t.Errorf("batch = %q", got)
	}
	if got := s.as(alice, 200, "GET "+z+"/recordsets?type=NS", "").items("recordsets", "name"); got[0] != "Example.ORG." {
		t.Errorf("the NS set has name %q", got)
	}
	for n := range s.pub.Snapshot().All() { // DNS has one form
		if n.Apex().String() != "example.org." {
			t.Errorf("zone %s is served", n.Apex())
		}
	}
}

// TestImportSpelling checks that an import keeps the letter case of names in the file.
func TestImportSpelling(t *testing.T) {
	s := newServer(t, designate.Settings{})
	file := "$ORIGIN Example.ORG.\n$TTL 3600\n@ SOA ns1 admin 1 2 3 4 5\n@ NS ns1\nWWW A 192.0.2.1\nwww A 192.0.2.2\n" +
		"ns1 A 192.0.2.3\n$ORIGIN sub.example.org.\nMail A 192.0.2.4\nplain A 192.0.2.5\nABS.example.org. TXT a\n"
	s.imports(alice, file, "")
	z := s.zonePath("example.org.")
	if got := s.as(alice, 200, "GET "+z, "").str("name"); got != "Example.ORG." {
		t.Errorf("the name of the zone is %q", got)
	}
	got := s.as(alice, 200, "GET "+z+"/recordsets?limit=100&sort_key=name", "").items("recordsets", "name")
	want := []string{"Example.ORG.", "Example.ORG.", "ABS.example.org.", "ns1.Example.ORG.", "Mail.sub.example.org.",
		"plain.sub.example.org.", "WWW.Example.ORG."}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got)\n%s", diff)
	}
}
