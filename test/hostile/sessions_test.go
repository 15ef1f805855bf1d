package hostile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

const alicePassword = "correct horse battery staple"

// withAlice starts a server with the user alice.
func withAlice(t *testing.T) *server.Server {
	t.Helper()
	s := server.Start(t, server.Options{})
	s.Must(http.MethodPost, "/access/v1/users",
		map[string]string{"name": "alice", "password": alicePassword, "role": "member"}, nil)
	return s
}

// logIn sends a login without a token.
func logIn(t *testing.T, s *server.Server, method, part string) server.Response {
	t.Helper()
	r, err := s.Call(http.MethodPost, s.HTTP+"/v3/auth/tokens",
		fmt.Sprintf(`{"auth":{"identity":{"methods":[%q],%q:%s}}}`, method, method, part))
	if err != nil {
		t.Error(err)
	}
	return r
}

// openSession opens a session of alice, with her password or with another session.
func openSession(t *testing.T, s *server.Server, with string) string {
	t.Helper()
	r := logIn(t, s, "token", fmt.Sprintf(`{"id":%q}`, with))
	if with == alicePassword {
		r = logIn(t, s, "password", fmt.Sprintf(`{"user":{"name":"alice","domain":{"id":"default"},"password":%q}}`, with))
	}
	if r.Status != http.StatusCreated {
		t.Errorf("login: %d %s", r.Status, r.Body)
	}
	return r.Header.Get("X-Subject-Token")
}

// endSession ends a session with its own rights.
func endSession(t *testing.T, s *server.Server, session string) {
	t.Helper()
	r, err := s.Call(http.MethodDelete, "/v3/auth/tokens", nil, "X-Auth-Token: "+session, "X-Subject-Token: "+session)
	if err != nil || r.Status != http.StatusNoContent {
		t.Errorf("end a session: %d %s %v", r.Status, r.Body, err)
	}
}

// wantSession lists zones with a session and checks the status.
func wantSession(t *testing.T, s *server.Server, what, session string, status int) {
	t.Helper()
	if r, err := s.Call(http.MethodGet, "/v2/zones", nil, "X-Auth-Token: "+session); err != nil || r.Status != status {
		t.Errorf("%s: %d %v, want %d", what, r.Status, err, status)
	}
}

// TestStolenSession checks that the sessions that a thief opens with a stolen session end with it, also after kill -9.
func TestStolenSession(t *testing.T) {
	s := withAlice(t)
	stolen := openSession(t, s, alicePassword)
	second := openSession(t, s, stolen)
	third := openSession(t, s, second)
	own := openSession(t, s, alicePassword)
	wantSession(t, s, "the third session", third, http.StatusOK)
	endSession(t, s, stolen)
	for range 2 {
		wantSession(t, s, "the stolen session", stolen, http.StatusUnauthorized)
		wantSession(t, s, "one that was opened with it", second, http.StatusUnauthorized)
		wantSession(t, s, "one that was opened with that", third, http.StatusUnauthorized)
		wantSession(t, s, "alice's own session", own, http.StatusOK)
		s.Restart()
	}
}

// TestUnrevocableSession has a thief open and end as many sessions as the server stores. The stolen session can still
// be ended, and alice can log in again.
func TestUnrevocableSession(t *testing.T) {
	s := withAlice(t)
	stolen := openSession(t, s, alicePassword)
	var left atomic.Int64
	left.Store(505)
	var thieves sync.WaitGroup
	for range 8 {
		thieves.Go(func() {
			for left.Add(-1) >= 0 && !t.Failed() {
				r := logIn(t, s, "token", fmt.Sprintf(`{"id":%q}`, stolen))
				if r.Status == http.StatusUnauthorized {
					return // it ended with all the others
				}
				session := r.Header.Get("X-Subject-Token")
				_, _ = s.Call(http.MethodDelete, "/v3/auth/tokens", nil, "X-Auth-Token: "+session, "X-Subject-Token: "+session)
			}
		})
	}
	thieves.Wait()
	r, err := s.Call(http.MethodDelete, "/v3/auth/tokens", nil, "X-Auth-Token: "+stolen, "X-Subject-Token: "+stolen)
	if err != nil || r.Status != http.StatusNoContent && r.Status != http.StatusUnauthorized {
		t.Errorf("alice ends the stolen session: %d %s %v", r.Status, r.Body, err)
	}
	wantSession(t, s, "the stolen session", stolen, http.StatusUnauthorized)
	wantSession(t, s, "a new session of alice", openSession(t, s, alicePassword), http.StatusOK)
}

// TestGuessesAtOnce sends many guesses of a password at the same time. The server must check only as many as for
// sequential guesses.
func TestGuessesAtOnce(t *testing.T) {
	s := withAlice(t)
	var checked, refused atomic.Int64
	began := time.Now()
	var guesses sync.WaitGroup
	for i := range 60 {
		guesses.Go(func() {
			guess := fmt.Sprintf(`{"user":{"name":"alice","domain":{"id":"default"},"password":"guess %d"}}`, i)
			switch r := logIn(t, s, "password", guess); r.Status {
			case http.StatusUnauthorized:
				checked.Add(1)
			case http.StatusTooManyRequests, http.StatusServiceUnavailable:
				refused.Add(1)
			default:
				t.Errorf("guess %d: %d %s", i, r.Status, r.Body)
			}
		})
	}
	guesses.Wait()
	// Ten guesses are free. After them, each second allows at most one more.
	if most := 11 + int64(time.Since(began)/time.Second); checked.Load() > most || checked.Load()+refused.Load() != 60 {
		t.Errorf("%d guesses were checked and %d refused, want at most %d checked", checked.Load(), refused.Load(), most)
	}
}

// exchangeRaw sends a DNS message unchanged.
func exchangeRaw(t *testing.T, s *server.Server, msg []byte) *dns.Msg {
	t.Helper()
	conn, err := net.Dial("udp", s.DNS[0])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reply := make([]byte, 65535)
	err = conn.SetDeadline(time.Now().Add(server.Patience))
	if err == nil {
		_, err = conn.Write(msg)
	}
	n := 0
	if err == nil {
		n, err = conn.Read(reply)
	}
	m := new(dns.Msg)
	if err == nil {
		err = m.Unpack(reply[:n])
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReplayedUpdate records a dynamic update on the network and sends it again after its record was deleted:
// immediately, and after kill -9.
func TestReplayedUpdate(t *testing.T) {
	const secret = "c2VjcmV0IG9mIHRoZSB6b25lIGV4YW1wbGUub3JnLi4="
	s := server.Start(t, server.Options{})
	path := s.CreateZone("example.org.")
	s.Must(http.MethodPost, "/v2/tsigkeys", map[string]string{"name": "key.example.org", "algorithm": "hmac-sha256",
		"secret": secret,
		"scope":  "ZONE", "resource_id": strings.TrimPrefix(path, "/v2/zones/")}, nil)
	signed := func(m *dns.Msg) []byte {
		m.SetTsig("key.example.org.", dns.HmacSHA256, 65535, time.Now().Unix())
		msg, _, err := dns.TsigGenerate(m, secret, "", false)
		if err != nil {
			t.Fatal(err)
		}
		return msg
	}
	records := []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: "a.example.org.", Rrtype: dns.TypeA, Class: dns.ClassINET,
		Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	add, remove := new(dns.Msg).SetUpdate("example.org."), new(dns.Msg).SetUpdate("example.org.")
	add.Insert(records)
	remove.RemoveRRset(records)
	recorded := signed(add)
	at := time.Now().Unix()
	for _, msg := range [][]byte{recorded, signed(remove)} {
		if r := exchangeRaw(t, s, msg); r.Rcode != dns.RcodeSuccess {
			t.Fatalf("update: %v", r)
		}
	}
	replay := func(when string) {
		t.Helper()
		r := exchangeRaw(t, s, recorded)
		if sig := r.IsTsig(); r.Rcode != dns.RcodeNotAuth || sig == nil || sig.Error != dns.RcodeBadTime {
			t.Errorf("%s: %v, want NOTAUTH and BADTIME", when, r)
		}
		if r := s.Ask("a.example.org.", dns.TypeA); r.Rcode != dns.RcodeNameError {
			t.Errorf("%s: the deleted record exists again: %v", when, r)
		}
	}
	replay("at once")
	if n := s.Metric(`nameplane_tsig_refused_total{error="replay"}`); n != 1 {
		t.Errorf("%v replays are counted, want 1", n)
	}
	// Time Signed has whole seconds, so the start must be in a later second.
	server.Eventually(t, "the next second", func() bool { return time.Now().Unix() > at })
	s.Restart()
	replay("after kill -9")
}

// TestWrongKeys sends invalid keys from one address until the server replies 429. A valid key from there still works.
func TestWrongKeys(t *testing.T) {
	s := server.Start(t, server.Options{})
	zones := s.HTTP + "/api/v1/servers/localhost/zones"
	replies := map[int]int{}
	for i := range 100 {
		r, err := s.Call(http.MethodGet, zones, nil, fmt.Sprintf("X-API-Key: np_wrong%d", i))
		if err != nil {
			t.Fatal(err)
		}
		if r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "" {
			t.Error("429 without Retry-After")
		}
		replies[r.Status]++
	}
	if replies[401] < 20 || replies[429] == 0 || replies[401]+replies[429] != 100 {
		t.Errorf("replies to 100 wrong keys by status: %v", replies)
	}
	if r, err := s.Call(http.MethodGet, zones, nil, "X-API-Key: "+s.Token); err != nil || r.Status != http.StatusOK {
		t.Errorf("a valid key from the same address: %d %v", r.Status, err)
	}
	if got := s.Metric("nameplane_http_throttled_tokens_total"); got != float64(replies[429]) {
		t.Errorf("%v throttled requests counted, want %d", got, replies[429])
	}
}

// TestMetricsAreNotForTenants checks that a tenant cannot read metrics, because they are about all projects, and that
// the token of Prometheus can read nothing else.
func TestMetricsAreNotForTenants(t *testing.T) {
	s := server.Start(t, server.Options{})
	tokens := map[string]string{"nobody": "", "admin": s.Token}
	for _, role := range []string{"reader", "member", "metrics"} {
		lines := strings.Fields(s.Run("token", "create", "a-"+role, "--role", role))
		tokens[role] = lines[len(lines)-1]
	}
	for _, tt := range []struct {
		who, path string
		want      int
	}{
		{"nobody", "/metrics", 401}, {"reader", "/metrics", 403}, {"member", "/metrics", 403}, {"admin", "/metrics", 200},
		{"metrics", "/metrics", 200}, {"metrics", "/v2/zones", 403}, {"metrics", "/access/v1/tokens", 403},
		{"metrics", "/admin/v1/backup", 403},
		{"metrics", "/v3/projects", 403}, {"metrics", "/explain/v1/scans", 403},
	} {
		header := "Accept: */*"
		if tokens[tt.who] != "" {
			header = "Authorization: Bearer " + tokens[tt.who]
		}
		if r, err := s.Call(http.MethodGet, s.HTTP+tt.path, nil, header); err != nil || r.Status != tt.want {
			t.Errorf("%s reads %s: %d %v, want %d", tt.who, tt.path, r.Status, err, tt.want)
		}
	}
	if r := logIn(t, s, "token", fmt.Sprintf(`{"id":%q}`, tokens["metrics"])); r.Status != http.StatusUnauthorized {
		t.Errorf("the token of Prometheus opens a session: %d", r.Status)
	}
}

// edgeListen adds the listener of platforms to the usual listeners.
const edgeListen = server.Listen + "mep: {listen: '127.0.0.1:0'}\n"

// TestForeignHost sends a Host header that net/http accepts, although no host can have that name. No link or header of
// a reply may repeat it.
func TestForeignHost(t *testing.T) {
	s := server.Start(t, server.Options{Config: edgeListen})
	zone := s.CreateZone("example.org.")
	hosts := []string{"127.0.0.1:80;evil=1", "evil.localhost"}
	for _, tt := range []struct{ method, url, body string }{
		{"GET", s.HTTP + "/", ""}, {"GET", s.HTTP + "/v3", ""}, {"GET", s.HTTP + "/v2", ""},
		{"GET", s.HTTP + "/v2/zones?limit=1", ""},
		{"GET", s.HTTP + zone + "/recordsets?limit=1", ""}, {"GET", s.HTTP + "/v3/projects", ""},
		{"GET", s.HTTP + "/v3/auth/catalog", ""},
		{"POST", s.HTTP + "/v2/zones", `{"name":"example.net.","email":"a@example.net"}`},
		{"POST", s.HTTP + zone + "/tasks/export", ""},
		{"GET", s.MEP + "/mep/config/app-1/dns_rules", ""},
	} {
		for i := range 4 {
			token := []string{s.Token, ""}[i/2]
			req, err := http.NewRequestWithContext(context.Background(), tt.method, tt.url, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Host = hosts[i%2]
			req.Header.Set("Content-Type", "application/json")
			if token != "" {
				req.Header.Set("X-Auth-Token", token)
			}
			r, err := s.Send(req)
			expected := []int{http.StatusMultipleChoices, http.StatusNotFound, http.StatusConflict}
			if err != nil || token != "" && !r.OK() && !slices.Contains(expected, r.Status) {
				t.Errorf("%s %s: %d %s %v", tt.method, tt.url, r.Status, r.Body, err)
			}
			if all := fmt.Sprint(r.Header) + string(r.Body); strings.Contains(all, "evil") {
				t.Errorf("%s %s repeats the host: %s", tt.method, tt.url, all)
			}
		}
	}
}

// TestKeysTwice sends bodies with duplicate keys. A gateway in front of the server may have checked only the harmless
// one.
func TestKeysTwice(t *testing.T) {
	s := server.Start(t, server.Options{Config: edgeListen + "externaldns: {listen: '127.0.0.1:0'}\n"})
	zone := s.CreateZone("example.org.")
	before := s.Must(http.MethodGet, zone+"/recordsets", nil, nil).Body
	for _, tt := range []struct{ method, url, body string }{
		{"POST", "/v2/zones", `{"name":"harmless.test.","email":"a@b.test","name":"example.net."}`},
		{"POST", zone + "/recordsets",
			`{"name":"a.example.org.","type":"TXT","records":["\"x\""],"type":"A","records":["192.0.2.1"]}`},
		{"POST", zone + "/changes", `{"changes":[{"action":"create","name":"a.example.org.","type":"A",` +
			`"records":["192.0.2.1"],"name":"b.example.org."}]}`},
		{"POST", "/v2/zones/tasks/imports",
			`{"zonefile":"","zonefile":"$ORIGIN example.net.\n@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a\n"}`},
		{"POST", "/v2/tsigkeys", `{"name":"a","name":"b","algorithm":"hmac-sha256","secret":"c2VjcmV0",` +
			`"scope":"POOL","resource_id":"794ccc2c-d751-44fe-b57f-8894c9f5c842"}`},
		{"POST", "/access/v1/tokens", `{"name":"x","role":"reader","role":"admin"}`},
		{"POST", "/access/v1/projects", `{"name":"x","name":"y"}`},
		{"POST", "/v3/auth/tokens", `{"auth":{"identity":{"methods":["token"],"token":{"id":"harmless","id":"` + s.Token +
			`"}}}}`},
		{"PUT", "/mep/dns_server_mgmt/v1/rrecord",
			`[{"zone":".","rr":[{"name":"a.test.","type":"A","class":"IN","ttl":30,` +
				`"rData":["192.0.2.1"],"rData":["192.0.2.2"]}]}]`},
		{"POST", powerDNSZones, `{"name":"harmless.test.","kind":"Native","name":"example.net."}`},
		{"PATCH", powerDNSZones + "/example.org.", `{"rrsets":[{"name":"a.example.org.","type":"A","ttl":60,` +
			`"changetype":"REPLACE","records":[{"content":"192.0.2.1","content":"192.0.2.2","disabled":false}]}]}`},
		{"PUT", s.MEP + "/mep/config/app-1/dns_rules",
			`[{"dnsRuleId":"r","domainName":"a.test","ipAddressType":"IP_V4","ipAddress":"192.0.2.1","IPAddress":"192.0.2.2"}]`},
	} {
		r, err := s.Call(tt.method, tt.url, tt.body, "X-Auth-Token: "+s.Token)
		if err != nil || r.Status != http.StatusBadRequest || !strings.Contains(string(r.Body), "is there twice") {
			t.Errorf("%s %s: %d %s %v, want 400", tt.method, tt.url, r.Status, r.Body, err)
		}
	}
	// external-dns ends after a 4xx, so its webhook replies with 500.
	r, err := s.Call("POST", s.ExternalDNS+"/records", `{"create":[{"dnsName":"a.example.org","recordType":"A",`+
		`"targets":["192.0.2.1"],"Targets":["192.0.2.2"]}]}`, "X-Auth-Token: "+s.Token)
	if err != nil || r.Status != http.StatusInternalServerError || !strings.Contains(string(r.Body), "is there twice") {
		t.Errorf("POST /records of external-dns: %d %s %v, want 500", r.Status, r.Body, err)
	}
	if after := s.Must(http.MethodGet, zone+"/recordsets", nil, nil).Body; string(after) != string(before) {
		t.Errorf("the zone is now %s", after)
	}
}
