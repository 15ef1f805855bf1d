package designate_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

var mallory = httpapi.Caller{Who: "token mallory", Project: "p6", Roles: []string{"member"}}

// generous returns a server without quotas for zones and records.
func generous(t testing.TB) *server {
	return newLimitedServer(t, designate.Settings{},
		quotas(func(q *publish.Quotas) { q.Zones, q.ZoneRecords, q.ZoneRecordsets = -1, -1, -1 }), nil)
}

// grow gives a project n zones, and n objects of each kind that has no quota.
func (s *server) grow(who httpapi.Caller, n int) {
	s.t.Helper()
	err := s.pub.Commit(s.t.Context(), store.Actor{Project: who.Project}, func(tx *publish.Tx) error {
		for i := range n {
			name := dnsname.MustParse(fmt.Sprintf("z%d.%s.test.", i, who.Project))
			soa := zone.RecordSet{Name: name, Type: 6, Data: []string{zone.SOA{MName: name, RName: name}.Data()}}
			ns := zone.RecordSet{Name: name, Type: 2, Data: []string{name.Wire()}}
			if _, err := tx.CreateZone(zone.Zone{Name: name, Project: who.Project, Kind: zone.Primary}, soa, ns); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range n {
		z := s.zonePathOf(who, fmt.Sprintf("z%d.%s.test.", i, who.Project))
		s.as(who, 201, "POST "+z+"/tasks/transfer_requests", "")
		s.as(who, 202, "POST "+z+"/tasks/export", "")
		s.as(who, 201, "POST "+z+"/shares", `{"target_project_id":"p7"}`)
		s.finished(who, s.as(who, 202, "POST /v2/zones/tasks/imports", `{"zonefile":"nonsense"}`).str("id"))
	}
}

func (s *server) zonePathOf(who httpapi.Caller, name string) string {
	s.t.Helper()
	return "/v2/zones/" + s.as(who, 200, "GET /v2/zones?name="+name, "").items("zones", "id")[0]
}

// work sends the requests of a small project and returns the number of rows that each request read.
func (s *server) work(round int) map[string]int {
	s.t.Helper()
	rows := map[string]int{}
	count := func(what string) { rows[what], _ = s.reads.Rows() }
	s.reads.Rows()
	z := s.zone(fmt.Sprintf("r%d.example.org.", round))
	count("create a zone")
	s.set(z, fmt.Sprintf("www.r%d.example.org.", round), "A", "192.0.2.1")
	count("create a record set")
	s.as(alice, 202, "POST "+z+"/tasks/export", "")
	count("export")
	req := s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "")
	count("offer a zone")
	accept := `{"key":"` + req.str("key") + `","zone_transfer_request_id":"` + req.str("id") + `"}`
	s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts", accept)
	count("accept a zone")
	for _, list := range []string{"zones", "recordsets", "zones/tasks/exports", "zones/tasks/imports",
		"zones/tasks/transfer_requests", "zones/tasks/transfer_accepts"} {
		s.as(admin, 200, "GET /v2/"+list, "", "X-Auth-Sudo-Project-Id: "+alice.Project)
		count("list " + list)
	}
	s.as(bob, 202, "DELETE "+z, "")
	count("delete a zone")
	for _, id := range s.as(alice, 200, "GET /v2/zones/tasks/exports", "").items("exports", "id") {
		s.as(alice, 204, "DELETE /v2/zones/tasks/exports/"+id, "")
	}
	return rows
}

// TestOthersRowsAreNotRead gives one tenant many zones, exports, imports, shares and transfer requests. Requests of
// another tenant must not read more rows, neither in lists nor in commits, where all others wait.
func TestOthersRowsAreNotRead(t *testing.T) {
	s := generous(t)
	s.work(0)
	before := s.work(1)
	s.grow(mallory, 30)
	for what, rows := range s.work(2) {
		if rows > before[what]+3 { // work itself adds a transfer request and an accept
			t.Errorf("%s: %d rows read beside a large project, %d without it", what, rows, before[what])
		}
	}
}

// TestRecordSetsOfOthersAreNotRead checks that a list of a project's record sets does not read those of other projects,
// wherever its own are among them.
func TestRecordSetsOfOthersAreNotRead(t *testing.T) {
	s := generous(t)
	const own, others = 2_001, 26_000 // own is more than a list sorts in memory
	s.fill(alice, "first.example.org.", own)
	s.fill(mallory, "middle.example.org.", others)
	s.fill(alice, "last.example.org.", 10)
	z := s.zonePathOf(alice, "first.example.org.")
	for _, list := range []string{"/v2/recordsets", "/v2/recordsets?sort_dir=desc", z + "/recordsets",
		z + "/recordsets?sort_dir=desc"} {
		s.reads.Rows()
		res := s.as(alice, 200, "GET "+list, "")
		if rows, _ := s.reads.Rows(); rows > 12*own {
			t.Errorf("%s read %d rows, and the project has %d", list, rows, own+10)
		}
		if n := len(res.items("recordsets", "id")); n != 20 {
			t.Errorf("%s has %d record sets", list, n)
		}
	}
	marker, seen := "", 0
	for more := true; more; {
		res := s.as(alice, 200, "GET /v2/recordsets?limit=1000"+marker, "")
		ids := res.items("recordsets", "id")
		seen += len(ids)
		if more = res.json["links"].(map[string]any)["next"] != nil; more {
			marker = "&marker=" + ids[len(ids)-1]
		}
	}
	if seen != own+10+4 {
		t.Errorf("the pages have %d record sets, want %d", seen, own+10+4)
	}
}

// fill creates a zone with n record sets besides SOA and NS.
func (s *server) fill(who httpapi.Caller, name string, n int) {
	s.t.Helper()
	z := uuid.MustParse(s.zoneOf(who, name)[len("/v2/zones/"):])
	err := s.pub.Commit(s.t.Context(), store.Actor{Project: who.Project}, func(tx *publish.Tx) error {
		for i := range n {
			set := zone.RecordSet{Zone: z, Name: dnsname.MustParse(fmt.Sprintf("n%d.%s", i, name)), Type: 1,
				Data: []string{"\xc0\x00\x02\x01"}}
			if _, err := tx.CreateSet(set); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestFinishedTasksExpire checks that finished exports, imports, transfer requests and accepts are deleted after a
// week. A transfer request that nobody has accepted stays.
func TestFinishedTasksExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, designate.Settings{})
		z := s.zone("example.org.")
		s.as(alice, 202, "POST "+z+"/tasks/export", "")
		s.as(alice, 202, "POST /v2/zones/tasks/imports", `{"zonefile":"nonsense"}`)
		req := s.as(alice, 201, "POST "+z+"/tasks/transfer_requests", "")
		s.as(bob, 201, "POST /v2/zones/tasks/transfer_accepts",
			`{"key":"`+req.str("key")+`","zone_transfer_request_id":"`+req.str("id")+`"}`)
		s.as(alice, 201, "POST "+s.zone("open.example.")+"/tasks/transfer_requests", "")
		synctest.Wait()
		lists := func() (n int) {
			for _, who := range []httpapi.Caller{alice, bob} {
				for _, list := range []string{"exports", "imports", "transfer_requests", "transfer_accepts"} {
					n += len(s.as(admin, 200, "GET /v2/zones/tasks/"+list, "", "X-Auth-Sudo-Project-Id: "+who.Project).
						items(list, "id"))
				}
			}
			return n
		}
		time.Sleep(7*24*time.Hour - time.Minute)
		if n := lists(); n != 5 {
			t.Errorf("%d objects are left before their time, want 5", n)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := lists(); n != 1 {
			t.Errorf("%d objects are left, want the open offer", n)
		}
		s.stop()
	})
}

// TestFinishedTasksAreBounded checks that a project that exports in a loop keeps its newest thousand exports.
func TestFinishedTasksAreBounded(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	oldest := s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id")
	s.exported(z, 999, uuid.NewV7)
	s.as(alice, 200, "GET /v2/zones/tasks/exports/"+oldest, "")
	newest := s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id")
	s.as(alice, 404, "GET /v2/zones/tasks/exports/"+oldest, "")
	s.as(alice, 200, "GET /v2/zones/tasks/exports/"+newest, "")
	total := s.as(alice, 200, "GET /v2/zones/tasks/exports", "").json["metadata"].(map[string]any)["total_count"]
	if total != 1000.0 {
		t.Errorf("%v exports are kept", total)
	}
}

// TestNewTasksAreKept checks that exports with random ids, from an earlier build, are dropped before new ones, although
// random ids sort behind new ids.
func TestNewTasksAreKept(t *testing.T) {
	s := newServer(t, designate.Settings{})
	z := s.zone("example.org.")
	s.exported(z, 1000, func() (uuid.UUID, error) {
		id, err := uuid.NewRandom()
		id[0] = 0xff // sorts behind new ids, like nearly all random ids
		return id, err
	})
	for range 2 {
		newest := s.as(alice, 202, "POST "+z+"/tasks/export", "").str("id")
		s.as(alice, 200, "GET /v2/zones/tasks/exports/"+newest, "")
	}
}

// exported stores n finished exports of alice's project.
func (s *server) exported(z string, n int, newID func() (uuid.UUID, error)) {
	s.t.Helper()
	err := s.pub.Commit(s.t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		for range n {
			id := uuid.Must(newID()).String()
			row := map[string]any{"id": id, "status": "COMPLETE", "project_id": "p1", "zone_id": z[len("/v2/zones/"):]}
			if err := tx.PutObject(store.KindZoneExport, id, row); err != nil {
				return err
			}
			if err := tx.PutObject(store.KindOwned.Of("zone_export p1"), "f"+id, true); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// TestOldTasksAreListed checks that objects from a build without lists by project are listed after the next start.
func TestOldTasksAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, designate.Settings{})
		z := s.zone("example.org.")[len("/v2/zones/"):]
		err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
			row := map[string]any{"id": "00000000-0000-4000-8000-000000000001", "status": "ACTIVE", "project_id": "p1",
				"zone_id":           z,
				"target_project_id": "p2", "zone_name": "example.org.", "key": "K",
				"created_at": time.Now().Format("2006-01-02T15:04:05.000000")}
			return tx.PutObject(store.KindTransferRequest, "00000000-0000-4000-8000-000000000001", row)
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // the hourly run does the same as a start
		synctest.Wait()
		for _, who := range []httpapi.Caller{alice, bob} {
			if got := s.as(who, 200, "GET /v2/zones/tasks/transfer_requests", "").items("transfer_requests",
				"id"); len(got) != 1 {
				t.Errorf("%s sees %q", who.Who, got)
			}
		}
		s.as(alice, 409, "POST /v2/zones/"+z+"/tasks/transfer_requests", "")
		s.stop()
	})
}

// TestOneCommitIsBounded checks the bounds on the shares of a zone and on the zones below a new zone: one commit reads
// all of them.
func TestOneCommitIsBounded(t *testing.T) {
	s := generous(t)
	z := s.zone("example.org.")
	err := s.pub.Commit(t.Context(), store.Actor{}, func(tx *publish.Tx) error {
		for i := range 1000 {
			if err := tx.PutObject(store.KindShare.Of(z[len("/v2/zones/"):]), fmt.Sprint(i), true); err != nil {
				return err
			}
			name := dnsname.MustParse(fmt.Sprintf("z%d.example.net.", i))
			soa := zone.RecordSet{Name: name, Type: 6, Data: []string{zone.SOA{MName: name, RName: name}.Data()}}
			ns := zone.RecordSet{Name: name, Type: 2, Data: []string{name.Wire()}}
			if _, err := tx.CreateZone(zone.Zone{Name: name, Project: "p1", Kind: zone.Primary}, soa, ns); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	res := s.as(alice, 413, "POST "+z+"/shares", `{"target_project_id":"p2"}`)
	if res.str("type") != "over_quota" {
		t.Error(res.Body)
	}
	above := `{"name":"example.net.","email":"a@example.org"}`
	last := s.as(alice, 202, "POST /v2/zones", `{"name":"last.example.net.","email":"a@example.org"}`).str("id")
	if res := s.as(alice, 413, "POST /v2/zones", above); res.str("type") != "over_quota" {
		t.Error(res.Body)
	}
	s.as(alice, 202, "DELETE /v2/zones/"+last, "")
	s.as(alice, 202, "POST /v2/zones", above)
}
