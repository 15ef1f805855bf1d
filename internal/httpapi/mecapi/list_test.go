package mecapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// TestListIfMatch lets two writers change all rules of an application: of two that have read the same list, one
// succeeds.
func TestListIfMatch(t *testing.T) {
	s := newServer(t, mecapi.API{})
	const all = "/mep/config/app1/dns_rules"
	tag := func(res response) string {
		t.Helper()
		got := res.Header().Get("ETag")
		if len(got) < 3 || got[0] != '"' {
			t.Fatalf("ETag %q is not strong", got)
		}
		return got
	}
	empty := tag(s.as(platform, 200, "GET "+all, ""))
	list := "[" + rule1 + "," + rule2 + "]"
	s.as(platform, 412, "PUT "+all, list, `If-Match: "other"`)
	made := tag(s.as(platform, 200, "PUT "+all, list, "If-Match: "+empty))
	s.as(platform, 412, "PUT "+all, "["+rule1+"]", "If-Match: "+empty)
	s.as(platform, 412, "PUT "+all, `{"state":"INACTIVE"}`, "If-Match: "+empty)
	s.want(s.as(platform, 200, "GET "+all, "").json, list)
	if read := tag(s.as(platform, 200, "GET "+all, "")); read != made {
		t.Errorf("read with the tag %s what was made with %s", read, made)
	}
	s.as(platform, 304, "GET "+all, "", "If-None-Match: "+made)
	if res := s.as(app1, 304, "GET /mec_app_support/v2/applications/app1/dns_rules", "",
		"If-None-Match: W/"+made); res.Body.Len() > 0 {
		t.Errorf("304 with the body %s", res.Body)
	}
	if again := tag(s.as(platform, 200, "PUT "+all, "["+rule2+","+rule1+"]", "If-Match: "+made)); again != made {
		t.Errorf("the same rules in another order have the tag %s, and had %s", again, made)
	}
	off := tag(s.as(platform, 200, "PUT "+all, `{"state":"INACTIVE"}`, "If-Match: "+made))
	s.as(platform, 200, "GET "+all, "", "If-None-Match: "+made)
	s.as(platform, 200, "PUT "+all+"/r1", `{"state":"ACTIVE"}`)
	s.as(platform, 412, "PUT "+all, "[]", "If-Match: "+off)
	s.as(platform, 200, "PUT "+all, "[]", "If-Match: *")
}

// TestTerminationRevokes checks that termination revokes the tokens of an application, also if it has nothing else. If
// they cannot be revoked, nothing is deleted.
func TestTerminationRevokes(t *testing.T) {
	left := map[string]int{"app1": 2, "app9": 1}
	var broken error
	s := startServer(t, mecapi.API{Revoke: func(_ context.Context, actor store.Actor, app string) (int, error) {
		n := left[app]
		if broken == nil {
			delete(left, app)
		}
		if actor.API != "mm5" || actor.Who == "" {
			t.Errorf("revoked by %+v", actor)
		}
		return n, broken
	}}, mec.Options{})
	s.rule("app1", rule1)
	broken = store.ErrUnavailable
	s.as(platform, 503, "DELETE /mep/config/app1", "")
	s.as(platform, 503, "DELETE /mep/mec_app_support/v1/applications/app1/AppInstanceTermination", "")
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules", "").json, "["+rule1+"]")
	broken = nil
	s.as(platform, 204, "DELETE /mep/config/app1", "")
	s.as(platform, 404, "DELETE /mep/config/app1", "")
	s.as(platform, 200, "DELETE /mep/mec_app_support/v1/applications/app9/AppInstanceTermination", "")
	if len(left) > 0 {
		t.Errorf("tokens are left: %v", left)
	}
}

// TestSilenced checks that a rule in a zone of the zones API is shown with silencedBy, where the schema allows it.
func TestSilenced(t *testing.T) {
	s := newServer(t, mecapi.API{})
	const all = "/mep/config/app1/dns_rules"
	one := s.rule("app1", rule1)
	s.rule("app1", strings.NewReplacer(`"r1"`, `"r3"`, "example.com", "example.org").Replace(rule1))
	s.makeZone("example.com.")
	silenced := strings.Replace(rule1, `"ttl"`, `"silencedBy":"example.com.","ttl"`, 1)
	s.want(s.as(platform, 200, "GET "+all+"/r1", "").json, silenced)
	s.want(s.as(app1, 200, "GET "+one, "").json, rule1)
	s.want(s.as(platform, 200, "PUT "+all+"/r1", `{"state":"INACTIVE"}`).json,
		strings.Replace(silenced, "ACTIVE", "INACTIVE", 1))
	other := s.as(platform, 200, "GET "+all+"/r3", "").json.(map[string]any)
	if other["silencedBy"] != nil {
		t.Errorf("a rule of another zone is shown as silenced: %v", other)
	}
	s.as(platform, 200, "PUT "+all+"/r1", silenced) // a client can write back what it has read
}

func (s *server) makeZone(name string) {
	s.t.Helper()
	n := dnsname.MustParse(name)
	soa := zone.SOA{MName: n, RName: n, Refresh: 1, Retry: 1, Expire: 1, Minimum: 1}
	err := s.pub.Commit(s.t.Context(), store.Actor{Who: "test"}, func(tx *publish.Tx) error {
		_, err := tx.CreateZone(zone.Zone{Name: n, Kind: zone.Primary, TTL: 60},
			zone.RecordSet{Name: n, Type: rr.TypeSOA, Data: []string{soa.Data()}},
			zone.RecordSet{Name: n, Type: rr.TypeNS, Data: []string{n.Wire()}})
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}
