package designate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// newPool creates a pool with name servers in the order of their priorities, and returns its id.
func (s *server) newPool(name, attributes string, servers ...string) string {
	s.t.Helper()
	body := `{"name":"` + name + `","attributes":{` + attributes + `},"ns_records":` + nsRecords(servers...) + `}`
	return s.as(admin, 201, "POST /v2/pools", body).str("id")
}

func nsRecords(servers ...string) string {
	var out []string
	for i, n := range servers {
		out = append(out, fmt.Sprintf(`{"hostname":"%s","priority":%d}`, n, i+1))
	}
	return "[" + strings.Join(out, ",") + "]"
}

// apex returns the records of a type at the apex of a zone.
func (s *server) apex(zone, typ string) []string {
	s.t.Helper()
	res := s.as(admin, 200, "GET "+zone+"/recordsets?type="+typ, "", "X-Auth-All-Projects: true")
	list, _ := res.json["recordsets"].([]any)
	for _, item := range list {
		set, _ := item.(map[string]any)
		if set["name"] == s.as(admin, 200, "GET "+zone, "", "X-Auth-All-Projects: true").str("name") {
			var out []string
			for _, r := range set["records"].([]any) {
				out = append(out, r.(string))
			}
			slices.Sort(out)
			return out
		}
	}
	return nil
}

func TestPools(t *testing.T) {
	s := newServer(t, designate.Settings{})
	res := s.as(admin, 201, "POST /v2/pools", `{"name":"gold","description":"for shops","attributes":{"tier":"gold"},
		"ns_records":[{"hostname":"ns2.gold.test.","priority":2},{"hostname":"ns1.gold.test.","priority":1}]}`)
	id := res.str("id")
	if got := res.Header().Get("Location"); got != "http://dns.test/v2/pools/"+id {
		t.Errorf("Location = %q", got)
	}
	if res.json["updated_at"] != nil || res.str("project_id") != "p0" {
		t.Errorf("created pool: %s", res.Body)
	}
	got := s.as(alice, 200, "GET /v2/pools", "").items("pools", "name")
	if !slices.Equal(got, []string{"default", "gold"}) {
		t.Errorf("pools = %q", got)
	}
	if got := s.as(alice, 200, "GET /v2/pools/"+id, ""); got.json["project_id"] != nil {
		t.Errorf("a tenant sees the project %v of a pool", got.json["project_id"])
	}
	if got := s.as(alice, 200, "GET /v2/pools?name=go*", "").items("pools", "id"); !slices.Equal(got, []string{id}) {
		t.Errorf("pools with a filter = %q", got)
	}
	if got := s.as(admin, 202, "PATCH /v2/pools/"+id, `{"attributes":{"tier":"silver"}}`); got.str("name") != "gold" ||
		fmt.Sprint(got.json["attributes"]) != "map[tier:silver]" || got.json["updated_at"] == nil {
		t.Errorf("changed pool: %s", got.Body)
	}
	s.as(admin, 409, "POST /v2/pools", `{"name":"gold","ns_records":`+nsRecords("ns.example.net.")+`}`)
	s.as(admin, 409, "POST /v2/pools", `{"name":"default","ns_records":`+nsRecords("ns.example.net.")+`}`)
	for _, call := range []string{"POST /v2/pools", "PATCH /v2/pools/" + id, "DELETE /v2/pools/" + id} {
		s.as(alice, 403, call, `{"name":"x"}`)
	}
	for _, call := range []string{"PATCH", "DELETE"} {
		res := s.as(admin, 400, call+" /v2/pools/794ccc2c-d751-44fe-b57f-8894c9f5c842", `{"description":"x"}`)
		if res.str("type") != "invalid_operation" {
			t.Errorf("%s of the default pool: %s", call, res.Body)
		}
		s.as(admin, 404, call+" /v2/pools/00000000-0000-4000-8000-000000000000", `{"description":"x"}`)
		s.as(admin, 400, call+" /v2/pools/x", `{"description":"x"}`)
	}
	s.as(admin, 204, "DELETE /v2/pools/"+id, "")
	s.as(admin, 404, "GET /v2/pools/"+id, "")
}

// TestPoolRefused checks that bad pools get 400 with the field that is wrong, on create and on update.
func TestPoolRefused(t *testing.T) {
	s := newServer(t, designate.Settings{})
	id := s.newPool("pool", "", "ns.example.net.")
	x51, x161 := strings.Repeat("x", 51), strings.Repeat("x", 161)
	many := nsRecords(slices.Repeat([]string{"a.example.net."}, 21)...)
	ns := func(item string) string {
		return `"ns_records":[{"hostname":"a.example.net.","priority":1},` + item + `]`
	}
	for _, tt := range []struct {
		name, fields string
		path         string // of the first problem; "": the message names the key
		validator    string
	}{
		{"name too long", `"name":"` + x51 + `"`, "[name]", "maxLength"},
		{"name empty", `"name":""`, "[name]", "minLength"},
		{"name null", `"name":null`, "[name]", "required"},
		{"name a number", `"name":5`, "[name]", "type"},
		{"description too long", `"description":"` + x161 + `"`, "[description]", "maxLength"},
		{"description a number", `"description":5`, "[description]", "type"},
		{"attributes a list", `"attributes":[]`, "[attributes]", "type"},
		{"attribute a number", `"attributes":{"a":1}`, "[attributes]", "type"},
		{"attribute key too long", `"attributes":{"` + x51 + `":"a"}`, "[attributes]", "maxLength"},
		{"attribute value too long", `"attributes":{"a":"` + x51 + `"}`, "[attributes]", "maxLength"},
		{"ns_records null", `"ns_records":null`, "[ns_records]", "required"},
		{"ns_records an object", `"ns_records":{}`, "[ns_records]", "type"},
		{"ns_records empty", `"ns_records":[]`, "[ns_records]", "minItems"},
		{"too many ns_records", `"ns_records":` + many, "[ns_records]", "maxItems"},
		{"an ns_record is a string", ns(`"b.example.net."`), "[ns_records 1]", "type"},
		{"hostname missing", ns(`{"priority":2}`), "[ns_records 1 hostname]", "required"},
		{"hostname without a dot", ns(`{"hostname":"b.example.net","priority":2}`), "[ns_records 1 hostname]", "format"},
		{"hostname not a name", ns(`{"hostname":"b..net.","priority":2}`), "[ns_records 1 hostname]", "format"},
		{"hostname a number", ns(`{"hostname":1,"priority":2}`), "[ns_records 1 hostname]", "type"},
		{"hostname twice", ns(`{"hostname":"A.example.net.","priority":2}`), "[ns_records 1 hostname]", "uniqueItems"},
		{"priority missing", ns(`{"hostname":"b.example.net."}`), "[ns_records 1 priority]", "required"},
		{"priority a string", ns(`{"hostname":"b.example.net.","priority":"2"}`), "[ns_records 1 priority]", "type"},
		{"priority too small", ns(`{"hostname":"b.example.net.","priority":0}`), "[ns_records 1 priority]", "minimum"},
		{"priority too large", ns(`{"hostname":"b.example.net.","priority":10001}`), "[ns_records 1 priority]", "maximum"},
		{"unknown key of an ns_record", ns(`{"hostname":"b.example.net.","priority":2,"port":53}`), "[ns_records 1]",
			"additionalProperties"},
		{"unknown key", `"junk":"x"`, "", "junk"},
		{"provisioner", `"provisioner":"` + x161 + `"`, "", "provisioner"},
		{"tenant_id", `"tenant_id":"` + strings.Repeat("x", 37) + `"`, "", "tenant_id"},
		{"an object around the pool", `"pool":{}`, "", "pool"},
	} {
		good := ""
		if !strings.HasPrefix(tt.fields, `"name"`) {
			good += `"name":"new",`
		}
		if !strings.HasPrefix(tt.fields, `"ns_records"`) {
			good += `"ns_records":` + nsRecords("ns.example.net.") + `,`
		}
		for _, r := range []request{
			{admin, "POST /v2/pools", "{" + good + tt.fields + "}", nil},
			{admin, "PATCH /v2/pools/" + id, "{" + tt.fields + "}", nil},
		} {
			res := s.want(400, r)
			path, validator := firstProblem(res)
			if tt.path == "" && strings.Contains(res.str("message"), "['"+tt.validator+"']") {
				continue
			}
			if res.str("type") != "invalid_object" || path != tt.path || validator != tt.validator {
				t.Errorf("%s: %s = %s %s, want %s %s", tt.name, r.call, path, validator, tt.path, tt.validator)
			}
		}
	}
	for _, missing := range []string{`{"name":"new"}`, `{"ns_records":` + nsRecords("ns.example.net.") + `}`} {
		if _, validator := firstProblem(s.as(admin, 400, "POST /v2/pools", missing)); validator != "required" {
			t.Errorf("POST %s: validator %q", missing, validator)
		}
	}
	if got := s.as(admin, 200, "GET /v2/pools", "").items("pools", "name"); len(got) != 2 {
		t.Errorf("refused requests left the pools %q", got)
	}
}

// firstProblem returns the path and the validator of the first problem in an error.
func firstProblem(res response) (path, validator string) {
	outer, _ := res.json["errors"].(map[string]any)
	list, _ := outer["errors"].([]any)
	if len(list) == 0 {
		return "", ""
	}
	p, _ := list[0].(map[string]any)
	validator, _ = p["validator"].(string)
	return fmt.Sprint(p["path"]), validator
}

// TestSchedule checks which pool a new zone gets.
func TestSchedule(t *testing.T) {
	s := newServer(t, designate.Settings{})
	gold := s.newPool("gold", `"tier":"gold","fast":"true"`, "ns1.gold.test.", "ns2.gold.test.")
	s.newPool("gold2", `"tier":"gold"`, "ns1.gold2.test.")
	plain := s.newPool("plain", "", "ns1.plain.test.")
	const standard, missing = "794ccc2c-d751-44fe-b57f-8894c9f5c842", "00000000-0000-4000-8000-000000000000"
	for i, tt := range []struct {
		who    string
		fields string
		status int    // of an error
		pool   string // or the type of the error
	}{
		{"alice", ``, 0, standard},
		{"alice", `,"attributes":{"tier":"gold"}`, 0, gold},
		{"alice", `,"attributes":{"tier":"gold","fast":"Yes"}`, 0, gold},
		{"alice", `,"attributes":{"tier":"gold","fast":"no"}`, 0, standard},
		{"alice", `,"attributes":{"tier":"bronze"}`, 0, standard},
		{"alice", `,"pool_id":"` + standard + `"`, 0, standard},
		{"alice", `,"attributes":{"tier":"gold"},"pool_id":"` + gold + `"`, 0, gold},
		{"alice", `,"pool_id":"` + plain + `"`, 403, "forbidden"},
		{"alice", `,"attributes":{"pool_id":"` + plain + `"}`, 403, "forbidden"},
		{"alice", `,"attributes":{"pool_id":"` + missing + `"}`, 404, "pool_not_found"},
		{"admin", `,"pool_id":"` + plain + `"`, 0, plain},
		{"admin", `,"attributes":{"pool_id":"` + plain + `"}`, 0, plain},
		{"admin", `,"attributes":{"pool_id":"nonsense"}`, 404, "pool_not_found"},
		{"admin", `,"pool_id":"` + missing + `"`, 404, "pool_not_found"},
		{"admin", `,"pool_id":"nonsense"`, 400, "invalid_object"},
	} {
		who := alice
		if tt.who == "admin" {
			who = admin
		}
		body := fmt.Sprintf(`{"name":"z%d.example.org.","email":"a@example.org"%s}`, i, tt.fields)
		if tt.status != 0 {
			if got := s.as(who, tt.status, "POST /v2/zones", body).str("type"); got != tt.pool {
				t.Errorf("%s %s = %s, want %s", tt.who, tt.fields, got, tt.pool)
			}
		} else if got := s.done(who, "POST /v2/zones", body).str("pool_id"); got != tt.pool {
			t.Errorf("%s %s is in pool %s, want %s", tt.who, tt.fields, got, tt.pool)
		}
	}
	zone := s.zonePath("z1.example.org.")
	if got := s.apex(zone, "NS"); !slices.Equal(got, []string{"ns1.gold.test.", "ns2.gold.test."}) {
		t.Errorf("NS of a zone of the pool = %q", got)
	}
	if got := s.apex(zone, "SOA"); !strings.HasPrefix(got[0], "ns1.gold.test. ") {
		t.Errorf("SOA of a zone of the pool = %q", got)
	}
	if got := s.as(alice, 200, "GET "+zone+"/nameservers", "").items("nameservers", "hostname"); len(got) != 2 {
		t.Errorf("nameservers = %q", got)
	}
	if got := s.as(admin, 400, "DELETE /v2/pools/"+gold, ""); got.str("type") != "invalid_operation" {
		t.Errorf("delete a pool with zones: %s", got.Body)
	}
}

// TestImportPool checks that an import uses the pool that it names, and is refused when there is none.
func TestImportPool(t *testing.T) {
	s := newServer(t, designate.Settings{})
	gold := s.newPool("gold", `"tier":"gold"`, "ns1.gold.test.")
	file := `$ORIGIN NAME\n$TTL 60\n@ SOA ns1 a 1 2 3 4 5\n@ NS ns1\nns1 A 192.0.2.1\n`
	body := func(name, more string) string {
		return `{"zonefile":"` + strings.ReplaceAll(file, "NAME", name) + `"` + more + `}`
	}
	for _, more := range []string{`,"pool_id":"00000000-0000-4000-8000-000000000000"`,
		`,"attributes":{"pool_id":"00000000-0000-4000-8000-000000000000"}`} {
		res := s.as(admin, 404, "POST /v2/zones/tasks/imports", body("a.example.org.", more))
		if res.str("type") != "pool_not_found" {
			t.Errorf("%s: %s", more, res.Body)
		}
	}
	s.as(admin, 400, "POST /v2/zones/tasks/imports", body("a.example.org.", `,"pool_id":"x"`))
	s.as(alice, 403, "POST /v2/zones/tasks/imports", body("a.example.org.", `,"pool_id":"`+gold+`"`))
	left := s.as(admin, 200, "GET /v2/zones/tasks/imports", "", "X-Auth-All-Projects: true").items("imports", "id")
	if len(left) != 0 {
		t.Errorf("refused imports left the tasks %q", left)
	}
	s.finished(alice, s.as(alice, 202, "POST /v2/zones/tasks/imports",
		body("b.example.org.", `,"attributes":{"tier":"gold"}`)).str("id"))
	if got := s.as(alice, 200, "GET "+s.zonePath("b.example.org."), "").str("pool_id"); got != gold {
		t.Errorf("imported zone is in pool %s", got)
	}
}

// goldZones creates a pool with two servers and zones of alice's in it.
func (s *server) goldZones() (pool string, zones []string) {
	s.t.Helper()
	pool = s.newPool("gold", `"tier":"gold"`, "ns1.gold.test.", "ns2.gold.test.")
	for i := range 5 {
		res := s.done(alice, "POST /v2/zones",
			fmt.Sprintf(`{"name":"z%d.example.org.","email":"a@example.org","attributes":{"tier":"gold"}}`, i))
		zones = append(zones, "/v2/zones/"+res.str("id"))
	}
	return "/v2/pools/" + pool, zones
}

// addServer adds a server to the NS set of a zone, as an administrator.
func (s *server) addServer(zone, server string) {
	s.t.Helper()
	id := s.as(alice, 200, "GET "+zone+"/recordsets?type=NS", "").items("recordsets", "id")[0]
	records := `"` + strings.Join(append(s.apex(zone, "NS"), server), `","`) + `"`
	s.done(admin, "PUT "+zone+"/recordsets/"+id, `{"records":[`+records+`]}`, "X-Auth-All-Projects: true",
		"X-Designate-Edit-Managed-Records: true")
}

// TestPoolServers checks that new name servers of a pool reach all its zones, with one commit for each, and no other
// zone.
func TestPoolServers(t *testing.T) {
	s := newServer(t, designate.Settings{})
	pool, zones := s.goldZones()
	all := append(slices.Clone(zones), s.zone("other.example.org."))
	s.addServer(zones[0], "own.example.net.") // it stays
	changes := s.historyLengths(all)
	s.as(admin, 202, "PATCH "+pool, `{"ns_records":`+nsRecords("ns3.gold.test.", "ns2.gold.test.")+`}`)
	s.poolsSettled()
	for i, z := range zones {
		want := []string{"ns2.gold.test.", "ns3.gold.test."}
		if i == 0 {
			want = append(want, "own.example.net.")
		}
		if got := s.apex(z, "NS"); !slices.Equal(got, want) {
			t.Errorf("NS of %s = %q, want %q", z, got, want)
		}
		if got := s.apex(z, "SOA"); !strings.HasPrefix(got[0], "ns3.gold.test. ") {
			t.Errorf("SOA of %s = %q", z, got)
		}
		changes[i]++
	}
	if got := s.historyLengths(all); !slices.Equal(got, changes) {
		t.Errorf("the zones have %v changes, want %v", got, changes)
	}
	// Another name of the pool, with the same servers, changes no zone.
	s.as(admin, 202, "PATCH "+pool, `{"name":"g","ns_records":`+nsRecords("ns3.gold.test.", "ns2.gold.test.")+`}`)
	s.poolsSettled()
	if got := s.historyLengths(all); !slices.Equal(got, changes) {
		t.Errorf("with equal servers the zones have %v changes, want %v", got, changes)
	}
	// Whatever the zones have when a pool changes twice, they get the servers of the last change.
	s.as(admin, 202, "PATCH "+pool, `{"ns_records":`+nsRecords("ns4.gold.test.")+`}`)
	s.as(admin, 202, "PATCH "+pool, `{"ns_records":`+nsRecords("ns5.gold.test.", "ns3.gold.test.")+`}`)
	s.poolsSettled()
	for _, z := range zones[1:] {
		if got := s.apex(z, "NS"); !slices.Equal(got, []string{"ns3.gold.test.", "ns5.gold.test."}) {
			t.Errorf("NS of %s after two changes = %q", z, got)
		}
	}
}

// TestPoolServersManyZones changes a pool with more zones than the server reads at a time.
func TestPoolServersManyZones(t *testing.T) {
	s := newLimitedServer(t, designate.Settings{}, quotas(func(q *publish.Quotas) { q.Zones = -1 }), nil)
	pool := uuid.MustParse(s.newPool("gold", "", "ns1.gold.test."))
	old, rname := dnsname.MustParse("ns1.gold.test."), dnsname.MustParse("a.example.org.")
	soa := zone.SOA{MName: old, RName: rname, Serial: 1, Refresh: 2, Retry: 3, Expire: 4, Minimum: 5}
	const n = 250
	err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		for i := range n {
			name := dnsname.MustParse(fmt.Sprintf("z%d.example.org.", i))
			_, err := tx.CreateZone(zone.Zone{Name: name, Project: "p1", Kind: zone.Primary, Pool: pool, TTL: 60},
				zone.RecordSet{Name: name, Type: rr.TypeSOA, Data: []string{soa.Data()}},
				zone.RecordSet{Name: name, Type: rr.TypeNS, Data: []string{old.Wire()}})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.as(admin, 202, "PATCH /v2/pools/"+pool.String(), `{"ns_records":`+nsRecords("ns2.gold.test.")+`}`)
	s.poolsSettled()
	changed := 0
	err = s.pub.View(func(v store.View) error {
		return v.ZonesOf("p1", dnsname.Root, func(z zone.Zone) (bool, error) {
			set, err := v.RecordSet(z.ID, z.Name, rr.TypeNS)
			rows, _ := v.CountChanges(z.ID)
			if err == nil && rows == 2 && slices.Equal(set.Data, []string{dnsname.MustParse("ns2.gold.test.").Wire()}) {
				changed++
			}
			return true, err
		})
	})
	if changed != n || err != nil {
		t.Errorf("%d zones have the new server by one change, %v; want %d", changed, err, n)
	}
}

// TestPoolServersAfterCrash checks that a start of the server continues with the zones of a changed pool.
func TestPoolServersAfterCrash(t *testing.T) {
	s := newServer(t, designate.Settings{})
	pool, zones := s.goldZones()
	id := strings.TrimPrefix(pool, "/v2/pools/")
	err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error { // the commit of a PATCH
		var p map[string]any
		if err := tx.Object(store.KindPool, id, &p); err != nil {
			return err
		}
		p["ns_records"] = []map[string]any{{"hostname": "ns9.gold.test.", "priority": 1}}
		old := []string{"ns1.gold.test.", "ns2.gold.test."}
		if err := tx.PutObject(store.KindPoolDue, id, map[string]any{"any": old, "all": old}); err != nil {
			return err
		}
		return tx.PutObject(store.KindPool, id, p)
	})
	if err != nil {
		t.Fatal(err)
	}
	again := &designate.API{Publisher: s.pub, Aliases: s.api.Aliases, Peers: noPeers, Settings: s.api.Settings}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := again.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	s.poolsSettled()
	cancel()
	running.Wait()
	for _, z := range zones {
		if got := s.apex(z, "NS"); !slices.Equal(got, []string{"ns9.gold.test."}) {
			t.Errorf("NS of %s = %q", z, got)
		}
	}
}

func TestPoolMove(t *testing.T) {
	s := newServer(t, designate.Settings{})
	pool, zones := s.goldZones()
	const standard = `{"pool_id":"794ccc2c-d751-44fe-b57f-8894c9f5c842"}`
	s.addServer(zones[0], "own.example.net.")
	move := func(status int, zone, body string) {
		t.Helper()
		s.as(admin, status, "POST "+zone+"/tasks/pool_move", body, "X-Auth-All-Projects: true")
	}
	move(400, zones[0], `{}`) // its attributes select the pool that it is in
	move(400, zones[0], `{"pool_id":"x"}`)
	move(404, zones[0], `{"pool_id":"00000000-0000-4000-8000-000000000000"}`)
	s.as(admin, 400, "DELETE "+pool, "")
	for _, z := range zones[1:] {
		s.as(alice, 202, "DELETE "+z, "")
	}
	move(202, zones[0], standard)
	move(400, zones[0], standard)
	want := []string{"ns1.example.net.", "ns2.example.net.", "own.example.net."}
	if got := s.apex(zones[0], "NS"); !slices.Equal(got, want) {
		t.Errorf("NS of a zone that was moved = %q", got)
	}
	move(202, zones[0], `{}`)
	if got := s.apex(zones[0], "SOA"); !strings.HasPrefix(got[0], "ns1.gold.test. ") {
		t.Errorf("SOA of a zone that was moved back = %q", got)
	}
	s.as(admin, 400, "DELETE "+pool, "")
	move(202, zones[0], standard)
	s.as(admin, 204, "DELETE "+pool, "") // no zone is left in it
}

// historyLengths returns the number of changes of each zone.
func (s *server) historyLengths(zones []string) (out []int) {
	s.t.Helper()
	for _, z := range zones {
		res := s.as(admin, 200, "GET "+z+"/history", "", "X-Auth-All-Projects: true")
		meta, _ := res.json["metadata"].(map[string]any)
		n, _ := meta["total_count"].(float64)
		out = append(out, int(n))
	}
	return out
}

// poolsSettled waits until no pool has zones without its servers.
func (s *server) poolsSettled() {
	s.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		due, err := publish.Read(s.pub, func(v store.View) (n int, err error) {
			err = v.EachObject(store.KindPoolDue, func(string, []byte) (bool, error) { n++; return true, nil })
			return n, err
		})
		if err != nil {
			s.t.Fatal(err)
		}
		if due == 0 {
			return
		}
	}
	s.t.Fatal("zones did not get the name servers of their pool")
}
