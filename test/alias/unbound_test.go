package alias

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// TestUnbound follows a target through a caching resolver: its first address, a new one, an outage, its removal, and
// the deletion of the ALIAS. Answers, transfers and exports have the same records.
func TestUnbound(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.set("www.example.net. 3 IN CNAME cdn.example.net.", "cdn.example.net. 2 IN A 203.0.113.1",
		"cdn.example.net. 2 IN AAAA 2001:db8::1")
	s := startServer(t, unbound(t, a))
	z := s.CreateZone("example.org.")
	set := s.alias(z, "example.org.", "www.example.net.")
	status := func(want string) func() bool {
		return func() bool { return s.must("GET", set, "")["status"] == want }
	}
	served := func(v4, v6 string) func() bool {
		return func() bool {
			return s.answer("example.org.", dns.TypeA) == v4 && s.answer("example.org.", dns.TypeAAAA) == v6
		}
	}
	server.Eventually(t, "an active ALIAS", status("ACTIVE"))
	const first, first6 = "example.org. 2 203.0.113.1", "example.org. 2 2001:db8::1"
	if !served(first, first6)() {
		t.Errorf("served: %s and %s", s.answer("example.org.", dns.TypeA), s.answer("example.org.", dns.TypeAAAA))
	}
	sameEverywhere(t, s, z, first6+", "+first)

	a.set("www.example.net. 3 IN CNAME cdn.example.net.", "cdn.example.net. 2 IN A 203.0.113.2",
		"cdn.example.net. 2 IN AAAA 2001:db8::1")
	server.Eventually(t, "the new address", served("example.org. 2 203.0.113.2", first6))

	a.setBroken(true)
	server.Eventually(t, "a stale ALIAS", status("STALE"))
	if !served("example.org. 2 203.0.113.2", first6)() {
		t.Error("an outage changed what is served")
	}
	known := s.must("GET", set, "")["alias"].(map[string]any)
	if known["cause"] == "" || known["next_attempt"] == nil ||
		fmt.Sprint(known["chain"]) != "[example.org. www.example.net. cdn.example.net.]" {
		t.Errorf("known of it: %v", known)
	}
	a.setBroken(false)
	server.Eventually(t, "an active ALIAS again", status("ACTIVE"))

	a.set("www.example.net. 3 IN CNAME cdn.example.net.", "cdn.example.net. 2 IN AAAA 2001:db8::1")
	server.Eventually(t, "one family less", served("", first6))
	a.set()
	server.Eventually(t, "a stale ALIAS of a name that is gone", status("STALE"))
	if !served("", first6)() {
		t.Error("NXDOMAIN changed what is served")
	}
	if _, out, _ := s.do("DELETE", set, ""); out["action"] != "DELETE" {
		t.Errorf("delete: %v", out)
	}
	if !served("", "")() {
		t.Error("what is served outlives the ALIAS")
	}
}

// sameEverywhere checks that answers, transfers and exports have the same records with the same TTL, and that transfers
// have no private types.
func sameEverywhere(t *testing.T, s *node, zone, want string) {
	t.Helper()
	records := s.transfer("example.org.")
	if got := texts(records); got != want {
		t.Errorf("transferred: %s, want %s", got, want)
	}
	for _, rec := range records {
		if rec.Header().Rrtype > 32768 {
			t.Errorf("transferred: %v", rec)
		}
	}
	export := s.must("POST", zone+"/tasks/export", "")["id"].(string)
	_, file, _ := s.do("GET", "/v2/zones/tasks/exports/"+export+"/export", "")
	text, _ := file["text"].(string)
	var parsed []dns.RR
	for p := dns.NewZoneParser(strings.NewReader(text), "", ""); ; {
		rec, ok := p.Next()
		if !ok {
			if p.Err() != nil {
				t.Fatal(p.Err())
			}
			break
		}
		parsed = append(parsed, rec)
	}
	if got := texts(parsed); got != want {
		t.Errorf("exported: %s, want %s", got, want)
	}
	if !strings.Contains(text, "; example.org. 300 IN ALIAS www.example.net.\n") {
		t.Errorf("the export does not mention the ALIAS:\n%s", text)
	}
}
