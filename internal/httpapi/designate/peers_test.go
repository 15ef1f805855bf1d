package designate_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr/specialaddrtest"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// fakePeers simulates other name servers: tests set their state and read the calls.
type fakePeers struct {
	progress []transfer.Progress
	state    transfer.Copy
	fetched  []string
}

func newPeersServer(t *testing.T) (*server, *fakePeers) {
	w := &fakePeers{}
	s := newServer(t, designate.Settings{})
	s.api.Peers = designate.Peers{
		Progress: func(uuid.UUID) []transfer.Progress { return w.progress },
		Copy:     func(uuid.UUID) transfer.Copy { return w.state },
		Refresh:  func(_ uuid.UUID, force bool) { w.fetched = append(w.fetched, fmt.Sprint(force)) },
	}
	return s, w
}

// TestZoneStatus checks that a zone is PENDING until all servers have it, and ERROR when one lacks it for long. The
// reply names that server.
func TestZoneStatus(t *testing.T) {
	one, two := transfer.Secondary{Addr: transfer.Remote{AddrPort: netip.MustParseAddrPort("192.0.2.1:53")}},
		transfer.Secondary{Addr: transfer.Remote{AddrPort: netip.MustParseAddrPort("192.0.2.2:53")}}
	has := transfer.Progress{Secondary: one, InSync: true}
	lacks := transfer.Progress{Secondary: two, Has: 7, Since: time.Now(), Next: time.Now(), Problem: "no answer"}
	late := lacks
	late.Since = time.Now().Add(-time.Hour)
	tests := []struct {
		name           string
		progress       []transfer.Progress
		status, action string
	}{
		{"no secondaries", nil, "ACTIVE", "NONE"},
		{"all have it", []transfer.Progress{has, has}, "ACTIVE", "NONE"},
		{"one lacks it", []transfer.Progress{has, lacks}, "PENDING", "CREATE"},
		{"one lacks it for long", []transfer.Progress{late, lacks, has}, "ERROR", "CREATE"},
		{"one lacks changes of records", []transfer.Progress{has, lacks}, "PENDING", "UPDATE"},
	}
	s, w := newPeersServer(t)
	path := s.zone("example.org.")
	for _, tt := range tests {
		if tt.action == "UPDATE" {
			for i := range 3 {
				s.as(alice, 202, "POST "+path+"/recordsets",
					fmt.Sprintf(`{"name":"www%d.example.org.","type":"A","records":["192.0.2.1"]}`, i))
			}
		}
		t.Run(tt.name, func(t *testing.T) {
			w.progress = tt.progress
			res := s.as(alice, 200, "GET "+path, "")
			if res.str("status") != tt.status || res.str("action") != tt.action {
				t.Errorf("%s %s, want %s %s", res.str("status"), res.str("action"), tt.status, tt.action)
			}
			list, _ := res.json["secondaries"].([]any)
			if len(list) != len(tt.progress) {
				t.Fatalf("secondaries %v", list)
			}
			for i, p := range tt.progress {
				got := list[i].(map[string]any)
				if got["address"] != p.Secondary.Addr.String() || got["in_sync"] != p.InSync ||
					got["acknowledged"] != (p.InSync || p.Acknowledged) ||
					!p.InSync && (got["serial"] != float64(7) || strings.Contains(fmt.Sprint(got["problem"]), p.Problem)) {
					t.Errorf("secondary %v, want %+v", got, p)
				}
			}
			found := s.as(alice, 200, "GET /v2/zones?status="+tt.status, "").json["zones"].([]any)
			if len(found) != 1 {
				t.Errorf("%d zones in the list of those that are %s", len(found), tt.status)
			}
		})
	}
	operator := admin
	operator.Project = alice.Project
	w.progress = []transfer.Progress{lacks}
	if res := s.as(operator, 200, "GET "+path, ""); !strings.Contains(res.Body.String(), `"problem":"no answer"`) {
		t.Errorf("an administrator reads %s", res.Body)
	}
	s.as(alice, 202, "POST /v2/zones", `{"name":"new.test.","email":"a@new.test"}`)
}

// TestSpecialMasters checks that only an administrator may set special addresses as masters, for new and existing
// zones.
func TestSpecialMasters(t *testing.T) {
	s, _ := newPeersServer(t)
	s.api.Settings.Special.NAT64 = []netip.Prefix{specialaddrtest.Prefix}
	z := s.as(alice, 202, "POST /v2/zones", `{"name":"second.test.","type":"SECONDARY","masters":["192.0.2.1"]}`)
	for _, a := range slices.Concat(specialaddrtest.Hostile, specialaddrtest.Private) {
		for _, call := range []string{"POST /v2/zones", "PATCH /v2/zones/" + z.str("id")} {
			body := fmt.Sprintf(`{"masters":[%q]}`, a)
			if strings.HasPrefix(call, "POST") {
				body = fmt.Sprintf(`{"name":"other.test.","type":"SECONDARY","masters":[%q]}`, a)
			}
			res := s.as(alice, 403, call, body)
			if want := fmt.Sprintf("The master %s is a", a); !strings.Contains(res.str("message"), want) {
				t.Errorf("%s: %s, want %q in it", call, res.Body, want)
			}
		}
	}
	for _, a := range specialaddrtest.Public {
		s.as(alice, 202, "PATCH /v2/zones/"+z.str("id"), fmt.Sprintf(`{"masters":[%q]}`, a))
	}
	s.as(admin, 202, "POST /v2/zones",
		`{"name":"metadata.test.","type":"SECONDARY","masters":["64:ff9b::169.254.169.254"]}`)
	namer := func(apex string, want zone.Namer) {
		t.Helper()
		err := s.pub.View(func(v store.View) error {
			z, err := v.ZoneByName(dnsname.MustParse(apex))
			if z.MastersBy != want {
				t.Errorf("the masters of %s: namer %d, want %d", apex, z.MastersBy, want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	namer("metadata.test.", zone.Administrator)
	namer("second.test.", zone.Tenant)
	operator, path := admin, "PATCH /v2/zones/"+z.str("id")
	operator.Project = alice.Project
	s.as(operator, 202, path, `{"masters":["10.1.2.3"]}`)
	s.as(alice, 202, path, `{"description":"copied"}`)
	namer("second.test.", zone.Administrator) // alice did not name the masters
	s.as(alice, 202, path, `{"masters":["192.0.2.1"]}`)
	namer("second.test.", zone.Tenant)
}

// TestSecondaryZones checks that a SECONDARY zone needs masters, and that its record sets cannot be changed here. It is
// transferred after its creation, after a change of its masters and on request.
func TestSecondaryZones(t *testing.T) {
	s, w := newPeersServer(t)
	z := s.as(alice, 202, "POST /v2/zones",
		`{"name":"second.test.","type":"SECONDARY","masters":["192.0.2.1","192.0.2.2:53","2001:db8::1"]}`)
	path := "/v2/zones/" + z.str("id")
	if z.str("status") != "PENDING" || z.str("action") != "CREATE" || len(z.json["masters"].([]any)) != 3 {
		t.Errorf("made %s", z.Body)
	}
	for _, bad := range []string{`"ns.example.org."`, `"192.0.2.1:0"`, `""`} {
		s.as(alice, 400, "POST /v2/zones", `{"name":"other.test.","type":"SECONDARY","masters":[`+bad+`]}`)
		s.as(alice, 400, "PATCH "+path, `{"masters":[`+bad+`]}`)
	}
	s.as(alice, 400, "POST /v2/zones",
		`{"name":"other.test.","type":"SECONDARY","masters":["192.0.2.1"],"email":"a@b.test"}`)
	for _, inner := range []string{"127.0.0.1", "10.0.0.1:5353", "192.168.1.1", "169.254.169.254", "::1", "fd00::1",
		"0.0.0.0", "::ffff:127.0.0.1"} {
		s.as(alice, 403, "POST /v2/zones", `{"name":"other.test.","type":"SECONDARY","masters":["`+inner+`"]}`)
		s.as(alice, 403, "PATCH "+path, `{"masters":["`+inner+`"]}`)
	}
	// a tenant must not find out what listens there
	for _, port := range []string{"192.0.2.1:5353", "[2001:db8::1]:22"} {
		s.as(alice, 403, "POST /v2/zones", `{"name":"other.test.","type":"SECONDARY","masters":["192.0.2.9","`+port+`"]}`)
		s.as(alice, 403, "PATCH "+path, `{"masters":["`+port+`"]}`)
	}
	s.as(alice, 400, "PATCH "+path, `{"masters":[]}`)
	s.as(alice, 400, "PATCH "+path, `{"masters":["192.0.2.1"`+strings.Repeat(`,"192.0.2.1"`, 16)+`]}`)
	s.as(alice, 202, "PATCH "+path, `{"description":"a copy"}`)
	s.as(alice, 202, "PATCH "+path, `{"masters":["192.0.2.9"]}`)
	s.as(alice, 202, "POST "+path+"/tasks/xfr", "")
	if fmt.Sprint(w.fetched) != "[false false false true]" {
		t.Errorf("fetched %v", w.fetched)
	}
	s.as(admin, 202, "POST /v2/zones", `{"name":"inner.test.","type":"SECONDARY","masters":["10.0.0.1","192.0.2.1:5353"]}`)
	at := time.Now()
	w.state = transfer.Copy{Secondary: publish.Secondary{Checked: at, Transferred: at}}
	if res := s.as(alice, 200, "GET "+path, ""); res.str("status") != "ACTIVE" || res.json["transferred_at"] == nil {
		t.Errorf("transferred %s", res.Body)
	}
	tag := s.as(alice, 200, "GET "+path, "").Header().Get("ETag")
	w.state.Expired, w.state.Problem, w.state.Reason = true, "connection refused", "no details"
	s.want(200, request{as: alice, call: "GET " + path, headers: []string{"If-None-Match: " + tag}}) // changed state
	if res := s.as(alice, 200, "GET "+path, ""); res.str("status") != "ERROR" ||
		res.json["copy"].(map[string]any)["problem"] != "no details" {
		t.Errorf("expired %s", res.Body)
	}
	operator := admin
	operator.Project = "p1"
	if res := s.as(operator, 200, "GET "+path, ""); res.json["copy"].(map[string]any)["problem"] != "connection refused" {
		t.Errorf("an administrator reads %s", res.Body)
	}
	set := `{"name":"www.second.test.","type":"A","records":["192.0.2.1"]}`
	for _, who := range []string{"alice", "admin"} {
		caller := alice
		if who == "admin" {
			caller = admin
			caller.Project = "p1"
		}
		s.as(caller, 403, "POST "+path+"/recordsets", set)
		s.as(caller, 403, "POST "+path+"/changes",
			`{"changes":[{"action":"create","name":"www.second.test.","type":"A","records":["192.0.2.1"]}]}`)
		s.as(caller, 403, "POST "+path+"/history/rollback", `{"serial":1}`)
	}
	s.as(alice, 200, "GET "+path+"/recordsets", "")
	s.as(alice, 202, "DELETE "+path, "")
}

// TestOneKeyOfAName checks that key names with and without the final dot are duplicates: a DNS message has one form.
func TestOneKeyOfAName(t *testing.T) {
	s, _ := newPeersServer(t)
	key := `{"name":"%s","algorithm":"hmac-sha256","secret":"c2VjcmV0","scope":"POOL","resource_id":"` + uuid.NewString() +
		`"}`
	s.as(admin, 201, "POST /v2/tsigkeys", fmt.Sprintf(key, "key.example.org"))
	s.as(admin, 409, "POST /v2/tsigkeys", fmt.Sprintf(key, "Key.example.org."))
	s.as(alice, 403, "POST /v2/tsigkeys", fmt.Sprintf(key, "mine.example.org"))
}
