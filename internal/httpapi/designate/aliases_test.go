package designate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/simnet"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

// aliasServer is the API with an alias service and a network in memory. It runs in a synctest bubble.
type aliasServer struct {
	*server
	net *simnet.Net
}

const outside = `
	zone example.net.
	cdn.example.net. 60 A 203.0.113.1, 203.0.113.2
	cdn.example.net. 120 AAAA 2001:db8::1
	latency 1s
`

func newAliasServer(t *testing.T) *aliasServer {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	aliases := alias.New(alias.Options{})
	pub, err := publish.Open(st, publish.Options{Derive: aliases.Derive})
	if err != nil {
		t.Fatal(err)
	}
	if err := aliases.Open(pub); err != nil {
		t.Fatal(err)
	}
	net := simnet.New(1)
	net.MustServer("192.0.2.53", outside)
	at, err := resolve.ParseServer("192.0.2.53")
	if err != nil {
		t.Fatal(err)
	}
	tracker := follow.New(follow.Options{Exchanger: net, Servers: []resolve.Server{at}, Changed: aliases.Changed})
	aliases.SetTracker(tracker)
	api := &designate.API{Publisher: pub, Aliases: aliases, Peers: noPeers, Settings: complete(t, designate.Settings{
		Nameservers: []designate.Nameserver{{Hostname: dnsname.MustParse("ns1.example.net."), Priority: 1}}})}
	runs := []func(context.Context) error{tracker.Run, aliases.Run, api.Run, pub.Run}
	var stops []func()
	for _, run := range runs {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- run(ctx) }()
		stops = append(stops, func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		for _, stop := range stops {
			stop()
		}
		st.Close()
	})
	return &aliasServer{&server{t: t, handler: api.Handler(), api: api, pub: pub}, net}
}

func (s *aliasServer) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// alias creates an ALIAS and returns its path.
func (s *aliasServer) alias(zone, name, target string) string {
	s.t.Helper()
	res := s.as(alice, 202, "POST "+zone+"/recordsets",
		fmt.Sprintf(`{"name":%q,"type":"ALIAS","ttl":300,"records":[%q]}`, name, target))
	return zone + "/recordsets/" + res.str("id")
}

// served returns how many addresses of a name the server answers with.
func (s *aliasServer) served(apex, name string) (n int) {
	s.t.Helper()
	z := s.pub.Snapshot().ZoneOf(dnsname.MustParse(apex))
	if z == nil {
		return 0
	}
	node := z.Find([]byte(dnsname.MustParse(name).In(dnsname.MustParse(apex))))
	if !node.Found() {
		return 0
	}
	for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
		if set, ok := node.Find(t); ok {
			n += set.Count
		}
	}
	return n
}

func (s *aliasServer) state(path string) (status, action, cause string) {
	s.t.Helper()
	res := s.as(alice, 200, "GET "+path, "")
	a, _ := res.json["alias"].(map[string]any)
	cause, _ = a["cause"].(string)
	return res.str("status"), res.str("action"), cause
}

func (s *aliasServer) wantState(path, status, action, cause string) {
	s.t.Helper()
	if st, ac, ca := s.state(path); st != status || ac != action || ca != cause {
		s.t.Errorf("%s %s %q, want %s %s %q", st, ac, ca, status, action, cause)
	}
}

func aliasTest(t *testing.T, fn func(t *testing.T, s *aliasServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { fn(t, newAliasServer(t)) })
}

func TestAlias(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		res := s.as(alice, 202, "POST "+z+"/recordsets",
			`{"name":"example.org.","description":"This is an example ALIAS record `+
				`set.","type":"ALIAS","ttl":3600,"records":["cdn.example.net."]}`)
		if res.str("status") != "PENDING" || res.str("action") != "CREATE" || res.json["alias"] != nil {
			t.Errorf("create = %s", res.Body)
		}
		path := z + "/recordsets/" + res.str("id")
		s.wantState(path, "PENDING", "CREATE", "")
		tag := s.as(alice, 200, "GET "+path, "").Header().Get("ETag")
		s.wait(2 * time.Second)
		s.wantState(path, "ACTIVE", "NONE", "")
		if s.as(alice, 200, "GET "+path, "", "If-None-Match: "+tag).Header().Get("ETag") == tag {
			t.Error("another status has the same tag")
		}
		if n := s.served("example.org.", "example.org."); n != 3 {
			t.Errorf("%d addresses are served", n)
		}
		s.golden("alias", s.as(alice, 200, "GET "+path, ""))
		// No caller sees the flattened sets.
		list := s.as(alice, 200, "GET "+z+"/recordsets", "")
		if diff := cmp.Diff([]string{"ALIAS", "NS", "SOA"},
			slices.Sorted(slices.Values(list.items("recordsets", "type")))); diff != "" {
			t.Errorf("list (-want +got):\n%s", diff)
		}
		if n := list.json["metadata"].(map[string]any)["total_count"]; n != 3.0 {
			t.Errorf("%v sets are counted", n)
		}
		s.pub.View(func(v store.View) error {
			name := dnsname.MustParse("example.org.")
			zone, _ := v.ZoneByName(name)
			set, err := v.RecordSet(zone.ID, name, rr.TypeA)
			if err != nil {
				t.Fatal(err)
			}
			s.as(alice, 404, "GET "+z+"/recordsets/"+set.ID.String(), "")
			s.as(alice, 404, "GET /v2/recordsets/"+set.ID.String(), "")
			s.as(alice, 404, "DELETE "+z+"/recordsets/"+set.ID.String(), "")
			s.as(alice, 400, "GET "+z+"/recordsets?marker="+set.ID.String(), "")
			return nil
		})
		for filter, want := range map[string]int{"status=ACTIVE": 3, "status=STALE": 0, "status=*": 3, "type=ALIAS": 1,
			"data=cdn*": 1, "data=203.0.113.1": 0} {
			if got := s.as(alice, 200, "GET "+z+"/recordsets?"+filter, "").items("recordsets", "type"); len(got) != want {
				t.Errorf("%s lists %v", filter, got)
			}
		}
		if s.as(alice, 200, "GET "+z, "").str("status") != "ACTIVE" {
			t.Error("the zone is not ACTIVE")
		}
		s.as(alice, 202, "DELETE "+path, "")
		s.as(alice, 404, "GET "+path, "")
		if n := s.served("example.org.", "example.org."); n != 0 {
			t.Errorf("%d addresses outlive their ALIAS", n)
		}
	})
}

func TestAliasUpdate(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		path := s.alias(z, "example.org.", "cdn.example.net.")
		s.wait(2 * time.Second)
		whole := s.as(alice, 200, "GET "+path, "").Body.String()
		s.wait(100 * time.Second)                  // the times in the state have changed
		s.as(alice, 202, "PUT "+path, whole)       // the client can send back what it has read
		s.as(alice, 202, "PUT "+path, `{"ttl":5}`) // a change of the TTL needs no lookup
		res := s.as(alice, 202, "PUT "+path, `{"records":["gone.example.net."]}`)
		if res.str("status") != "PENDING" || res.str("action") != "UPDATE" {
			t.Errorf("update = %s", res.Body)
		}
		s.wait(3 * time.Second)
		s.wantState(path, "ERROR", "UPDATE", "nxdomain")
		if list := s.as(alice, 200, "GET "+z+"/recordsets?status=ERROR", "").items("recordsets", "type"); len(list) != 1 {
			t.Errorf("status=ERROR lists %v", list)
		}
		s.as(alice, 400, "PUT "+path, `{"records":[]}`)
		s.as(alice, 400, "PUT "+path, `{"records":["a.example.net.","b.example.net."]}`)
		s.as(alice, 400, "PUT "+path, `{"type":"A"}`)
		s.as(alice, 400, "POST "+z+"/recordsets", `{"name":"x.example.org.","type":"ALIAS"}`)
	})
}

// TestAliasPlacement checks that a name cannot have an ALIAS and addresses or a CNAME. It creates them in both orders
// and with every operation of the API.
func TestAliasPlacement(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		s.alias(z, "alias.example.org.", "cdn.example.net.")
		s.alias(z, "dead.example.org.", "gone.example.net.")
		s.set(z, "addr.example.org.", "A", "192.0.2.1")
		s.set(z, "addr6.example.org.", "AAAA", "2001:db8::1")
		s.set(z, "cname.example.org.", "CNAME", "www.example.org.")
		s.wait(3 * time.Second)
		tests := []struct{ name, typ, record string }{
			{"addr.example.org.", "ALIAS", "cdn.example.net."},
			{"addr6.example.org.", "ALIAS", "cdn.example.net."},
			{"cname.example.org.", "ALIAS", "cdn.example.net."},
			{"alias.example.org.", "A", "192.0.2.1"},
			{"alias.example.org.", "AAAA", "2001:db8::1"},
			{"alias.example.org.", "CNAME", "www.example.org."},
			{"dead.example.org.", "A", "192.0.2.1"},
		}
		for _, tt := range tests {
			body, _ := json.Marshal(map[string]any{"name": tt.name, "type": tt.typ, "records": []string{tt.record}})
			batch, _ := json.Marshal(map[string]any{
				"changes": []any{map[string]any{"action": "upsert", "name": tt.name, "type": tt.typ,
					"records": []string{tt.record}}}})
			for call, body := range map[string]string{"POST " + z + "/recordsets": string(body),
				"POST " + z + "/changes": string(batch)} {
				if res := s.as(alice, 400, call, body); res.str("type") != "invalid_recordset_location" {
					t.Errorf("%s %s: %s", call, body, res.Body)
				}
			}
		}
		if n := s.served("example.org.", "alias.example.org."); n != 3 {
			t.Errorf("%d addresses are served after what was refused", n)
		}
		s.as(alice, 409, "POST "+z+"/recordsets", `{"name":"alias.example.org.","type":"ALIAS","records":["b.example.net."]}`)
		s.set(z, "alias.example.org.", "TXT", "beside")
	})
}

func TestAliasInBatches(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		res := s.as(alice, 200, "POST "+z+"/changes",
			`{"changes":[{"action":"create","name":"example.org.","type":"ALIAS","records":["cdn.example.net."]}]}`)
		set := res.json["recordsets"].([]any)[0].(map[string]any)
		if set["status"] != "PENDING" || set["action"] != "CREATE" || len(res.json["recordsets"].([]any)) != 1 {
			t.Errorf("batch = %s", res.Body)
		}
		res = s.as(alice, 200, "POST "+z+"/changes",
			`{"changes":[{"action":"create","name":"a.example.org.","type":"A","records":["192.0.2.7"]},{"action":"create",`+
				`"name":"b.example.org.","type":"ALIAS","records":["a.example.org."]}]}`)
		if got := res.items("recordsets", "status"); !slices.Equal(got, []string{"ACTIVE", "ACTIVE"}) {
			t.Errorf("a target and its ALIAS in one batch are %v", got)
		}
		s.wait(2 * time.Second)
		for _, action := range []string{"update", "delete"} { // a hidden set cannot be changed
			s.as(alice, 404, "POST "+z+"/changes",
				`{"changes":[{"action":"`+action+`","name":"example.org.","type":"A","records":["192.0.2.1"]}]}`)
		}
		// One batch replaces an ALIAS by addresses or the reverse, in any order of its items.
		toA := []string{`{"action":"delete","name":"example.org.","type":"ALIAS"}`,
			`{"action":"create","name":"example.org.","type":"A","records":["192.0.2.1"]}`}
		toAlias := []string{`{"action":"delete","name":"example.org.","type":"A"}`,
			`{"action":"upsert","name":"example.org.","type":"ALIAS","records":["cdn.example.net."]}`}
		for range 2 {
			s.as(alice, 200, "POST "+z+"/changes", `{"changes":[`+strings.Join(toA, ",")+`]}`)
			if n := s.served("example.org.", "example.org."); n != 1 {
				t.Errorf("%d addresses, want the one of the A set", n)
			}
			s.as(alice, 200, "POST "+z+"/changes", `{"changes":[`+strings.Join(toAlias, ",")+`]}`)
			s.wait(2 * time.Second)
			if n := s.served("example.org.", "example.org."); n != 3 {
				t.Errorf("%d addresses, want those of the target", n)
			}
			slices.Reverse(toA)
			slices.Reverse(toAlias)
		}
	})
}

func TestAliasHistory(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		serial := func() int { return int(s.as(alice, 200, "GET "+z, "").json["serial"].(float64)) }
		s.set(z, "www.example.org.", "A", "192.0.2.1")
		addresses := serial()
		s.as(alice, 200, "POST "+z+"/changes",
			`{"changes":[{"action":"delete","name":"www.example.org.","type":"A"},{"action":"create",`+
				`"name":"www.example.org.","type":"ALIAS","records":["cdn.example.net."]}]}`)
		s.wait(2 * time.Second)
		aliased := serial()
		history := s.as(alice, 200, "GET "+z+"/history", "")
		text := history.Body.String()
		if !strings.Contains(text, `"flattened":true`) || !strings.Contains(text, `"api":"alias"`) {
			t.Errorf("the history does not show what was flattened: %s", text)
		}
		diff := s.as(alice, 200, fmt.Sprintf("GET %s/history/diff?from=%d&to=%d", z, addresses, aliased), "")
		var got []string
		for _, c := range diff.json["recordsets"].([]any) {
			m := c.(map[string]any)
			if m["type"] != "SOA" {
				got = append(got, fmt.Sprint(m["type"], " ", m["before"] != nil, " ", m["after"] != nil))
			}
		}
		if d := cmp.Diff([]string{"A true false", "ALIAS false true"}, got); d != "" {
			t.Errorf("diff (-want +got):\n%s", d)
		}
		for _, to := range []struct {
			serial, served int
			typ            string
		}{{addresses, 1, "A"}, {aliased, 3, "ALIAS"}, {addresses, 1, "A"}} {
			s.as(alice, 200, "POST "+z+"/history/rollback", fmt.Sprintf(`{"serial":%d}`, to.serial))
			s.wait(2 * time.Second)
			if n := s.served("example.org.", "www.example.org."); n != to.served {
				t.Errorf("after the rollback to %d: %d addresses, want %d", to.serial, n, to.served)
			}
			if got := s.as(alice, 200, "GET "+z+"/recordsets?name=www.example.org.", "").items("recordsets",
				"type"); len(got) != 1 || got[0] != to.typ {
				t.Errorf("after the rollback to %d: %v", to.serial, got)
			}
		}
	})
}

// TestFlattenTask requests lookups before they are due: twice in a row is too often.
func TestFlattenTask(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		path, www := s.alias(z, "example.org.", "cdn.example.net."), s.set(z, "www.example.org.", "A", "192.0.2.1")
		s.wait(10 * time.Second)
		s.net.Forget()
		if res := s.as(alice, 202, "POST "+path+"/tasks/flatten", ""); res.str("type") != "ALIAS" {
			t.Errorf("flatten = %s", res.Body)
		}
		for range 100 {
			res := s.as(alice, 429, "POST "+path+"/tasks/flatten", "")
			if res.Header().Get("Retry-After") != "5" {
				t.Fatalf("Retry-After %q", res.Header().Get("Retry-After"))
			}
		}
		s.wait(2 * time.Second)
		if n := len(s.net.History()); n != 2 {
			t.Errorf("%d queries", n)
		}
		s.as(alice, 400, "POST "+www+"/tasks/flatten", "")
		s.as(carol, 403, "POST "+path+"/tasks/flatten", "")
		s.as(bob, 404, "POST "+path+"/tasks/flatten", "")
		s.as(alice, 404, "POST "+z+"/recordsets/00000000-0000-4000-8000-000000000000/tasks/flatten", "")
		s.wait(5 * time.Second)
		s.as(alice, 202, "POST "+path+"/tasks/flatten", "")
	})
}

// TestAliasExportImport imports an export: an ALIAS comes back as addresses, or with revive_alias as an ALIAS.
func TestAliasExportImport(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		s.alias(z, "example.org.", "cdn.example.net.")
		s.alias(z, "dead.example.org.", "gone.example.net.")
		s.wait(3 * time.Second)
		export := func() string {
			t.Helper()
			z := s.zonePath("example.org.")
			return s.as(alice, 200, "GET /v2/zones/tasks/exports/"+s.as(alice, 202, "POST "+z+"/tasks/export",
				"").str("id")+"/export", "").Body.String()
		}
		file := export()
		const lines = "; example.org. 300 IN ALIAS cdn.example.net.\n@ 60 IN A 203.0.113.1\n@ 60 IN A 203.0.113.2\n@ 120 " +
			"IN AAAA 2001:db8::1\n; dead.example.org. 300 IN ALIAS gone.example.net.\n"
		if !strings.HasSuffix(file, lines) {
			t.Errorf("export ends with\n%s, want\n%s", file, lines)
		}
		imported := func(query string, status int, types ...string) {
			t.Helper()
			res := s.imports(alice, file, query)
			s.wait(time.Second)
			if done := s.as(alice, 200, "GET /v2/zones/tasks/imports/"+res.str("id"), ""); done.str("status") != "COMPLETE" {
				t.Fatalf("import%s = %s", query, done.Body)
			}
			s.wait(3 * time.Second)
			got := s.as(alice, 200, "GET "+s.zonePath("example.org.")+"/recordsets?sort_key=type", "").items("recordsets",
				"type")
			if diff := cmp.Diff(types, got); diff != "" {
				t.Errorf("import%s (-want +got):\n%s", query, diff)
			}
			if n := s.served("example.org.", "example.org."); n != 3 {
				t.Errorf("import%s: %d addresses are served", query, n)
			}
		}
		s.as(alice, 202, "DELETE "+z, "")
		imported("?revive_alias=true", 202, "ALIAS", "ALIAS", "NS", "SOA")
		if again := export(); withoutSOA(again) != withoutSOA(file) {
			t.Errorf("exported again:\n%s, want\n%s", again, file)
		}
		imported("?replace=true", 202, "A", "AAAA", "NS", "SOA")
		imported("?replace=true&revive_alias=true", 202, "ALIAS", "ALIAS", "NS", "SOA")
		s.as(alice, 202, "DELETE "+s.zonePath("example.org."), "")
		imported("", 202, "A", "AAAA", "NS", "SOA")
	})
}

// withoutSOA returns the file without the line of the SOA record.
func withoutSOA(file string) string {
	lines := strings.Split(file, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, " SOA ") }), "\n")
}

func TestV1Records(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		s.alias(z, "example.org.", "cdn.example.net.")
		s.set(z, "www.example.org.", "A", "192.0.2.1", "192.0.2.2")
		s.set(z, "example.org.", "MX", "10 mail.example.org.")
		s.wait(2 * time.Second)
		path := "/v1/domains/" + strings.TrimPrefix(z, "/v2/zones/") + "/records"
		res := s.as(alice, 200, "GET "+path, "")
		var got []string
		for _, item := range res.json["records"].([]any) {
			m := item.(map[string]any)
			if m["type"] != "SOA" && m["type"] != "NS" {
				got = append(got, fmt.Sprint(m["name"], " ", m["type"], " ", m["priority"], " ", m["data"]))
			}
		}
		want := []string{"example.org. MX 10 mail.example.org.",
			`example.org. TXT <nil> "ALIAS cdn.example.net. (only editable via the V2 API)"`,
			"www.example.org. A <nil> 192.0.2.1", "www.example.org. A <nil> 192.0.2.2"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
		s.as(bob, 404, "GET "+path, "")
		s.as(alice, 405, "POST "+path, `{}`)
	})
}

// TestAliasQuota checks that quotas and counts ignore the sets that are derived from an ALIAS.
func TestAliasQuota(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		s.as(admin, 200, "PATCH /v2/quotas/p1", `{"zone_recordsets":4,"zone_records":4,"recordset_records":1}`,
			"X-Auth-All-Projects: true")
		z := s.zone("example.org.")
		s.alias(z, "example.org.", "cdn.example.net.")
		s.wait(2 * time.Second)
		if n := s.served("example.org.", "example.org."); n != 3 {
			t.Errorf("%d addresses are served", n)
		}
		s.set(z, "www.example.org.", "A", "192.0.2.1")
		s.as(alice, 413, "POST "+z+"/recordsets", `{"name":"b.example.org.","type":"A","records":["192.0.2.1"]}`)
	})
}
