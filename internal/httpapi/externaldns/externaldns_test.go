package externaldns_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/publish"
)

func TestNegotiate(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.token, "example.org.")
	s.zone(s.token, "example.net.")
	s.zone(s.Admin, "example.com.")
	if w := s.send(s.zones, s.token, "POST", "/v2/zones",
		`{"name": "copy.test.", "type": "SECONDARY", "masters": ["192.0.2.53"]}`); w.Code >= 300 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	w := s.send(s.webhook, s.token, "GET", "/", "")
	if got := w.Header().Get("Content-Type"); got != "application/external.dns.webhook+json;version=1" {
		t.Errorf("Content-Type %q", got)
	}
	if want := `{"include":["example.net","example.org"]}`; w.Code != 200 || w.Body.String() != want {
		t.Errorf("GET / = %d %s, want %s", w.Code, w.Body, want)
	}
}

// TestLoop does what one loop of external-dns does, in the spelling of each version: adjust, create, read, update,
// delete. The records that the server returns are equal to the adjusted endpoints, so the next loop has no changes.
func TestLoop(t *testing.T) {
	for _, tt := range []struct{ name, create, old, next, remove string }{
		{"v0.14", "Create", "UpdateOld", "UpdateNew", "Delete"},
		{"current", "create", "updateOld", "updateNew", "delete"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t, publish.DefaultQuotas())
			s.zone(s.token, "example.org.")
			want := s.adjust(`[
				{"dnsName":"example.org","targets":["10 mail.Example.org."],"recordType":"MX"},
				{"dnsName":"*.example.org","targets":["192.0.2.2","192.0.2.1"],"recordType":"A","recordTTL":300},
				{"dnsName":"txt.example.org","targets":["v=spf1 a \"b\" -all"],"recordType":"TXT"},
				{"dnsName":"www.example.org","targets":["lb.example.net"],"recordType":"CNAME","recordTTL":5},
				{"dnsName":"v6.example.org","targets":["2001:DB8:0::1"],"recordType":"AAAA"},
				{"dnsName":"_sip._tcp.example.org","targets":["1 2 5060 sip.example.org"],"recordType":"SRV"}]`)
			s.apply(http.StatusNoContent, `{"`+tt.create+`":`+want+`}`)
			const rest = `{"dnsName":"_sip._tcp.example.org","targets":["1 2 5060 sip.example.org"],"recordType":"SRV"},` +
				`{"dnsName":"txt.example.org","targets":["\"v=spf1 a \\\"b\\\" -all\""],"recordType":"TXT"},` +
				`{"dnsName":"v6.example.org","targets":["2001:db8::1"],"recordType":"AAAA"},`
			const mx = `[{"dnsName":"example.org","targets":["10 mail.Example.org"],"recordType":"MX"},`
			const star = `{"dnsName":"*.example.org","targets":["192.0.2.1","192.0.2.2"],"recordType":"A","recordTTL":300}`
			const www = `{"dnsName":"www.example.org","targets":["lb.example.net"],"recordType":"CNAME","recordTTL":30}`
			s.mustHave(mx + star + `,` + rest + www + `]`)
			for _, e := range []string{star, www} {
				if !strings.Contains(want, e) {
					t.Errorf("adjusted: %s, want the form of records: %s", want, e)
				}
			}
			next := strings.Replace(www, "lb.", "lb2.", 1)
			s.apply(http.StatusNoContent, `{"`+tt.old+`":[`+www+`],"`+tt.next+`":[`+next+`],"`+tt.remove+`":[`+star+`]}`)
			s.mustHave(mx + rest + next + `]`)
			s.apply(http.StatusNoContent, `{"`+tt.remove+`":`+mx+rest+next+`]}`)
			s.mustHave(`[]`)
		})
	}
}

// TestAdjust checks that endpoints which can never be served are left out, logged and counted, and that the others of
// the request remain.
func TestAdjust(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.token, "example.org.")
	s.zone(s.Admin, "other.test.")
	const good = `{"dnsName":"good.example.org","targets":["192.0.2.1"],"recordType":"A","labels":{"owner":"me"}}`
	for _, tt := range []struct{ reason, bad string }{
		{"set_identifier", `{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"A","setIdentifier":"x"}`},
		{"type", `{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"NOTYPE"}`},
		{"type", `{"dnsName":"a.example.org","targets":["lb.example.net"],"recordType":"ALIAS"}`},
		{"zone", `{"dnsName":"a.example.net","targets":["192.0.2.1"],"recordType":"A"}`},
		{"zone", `{"dnsName":"a.other.test","targets":["192.0.2.1"],"recordType":"A"}`},
		{"zone", `{"dnsName":"example.org","targets":["ns.example.net"],"recordType":"NS"}`},
		{"name", `{"dnsName":"a..example.org","targets":["192.0.2.1"],"recordType":"A"}`},
		{"name", `null`},
		{"data", `{"dnsName":"a.example.org","targets":["not an address"],"recordType":"A"}`},
		{"data", `{"dnsName":"a.example.org","targets":[],"recordType":"A"}`},
		{"data", `{"dnsName":"a.example.org","targets":["b.example.net","c.example.net"],"recordType":"CNAME"}`},
		{"apex", `{"dnsName":"example.org","targets":["lb.example.net"],"recordType":"CNAME"}`},
		{"beside", `{"dnsName":"good.example.org","targets":["lb.example.net"],"recordType":"CNAME"}`},
		{"beside", `{"dnsName":"good.example.org","targets":["lb.example.net"],"recordType":"CNAME",` +
			`"providerSpecific":[{"name":"alias","value":"true"}]}`},
	} {
		before := s.dropped(tt.reason)
		s.log.Reset()
		if got := s.adjust(`[` + tt.bad + `,` + good + `]`); got != `[`+good+`]` {
			t.Errorf("adjust %s: got %s, want only the good one", tt.bad, got)
		}
		if n := s.dropped(tt.reason) - before; n != 1 {
			t.Errorf("adjust %s: the metric for %s grew by %v, want 1", tt.bad, tt.reason, n)
		}
		if !strings.Contains(s.log.String(), "external-dns endpoint left out") {
			t.Errorf("adjust %s: not logged: %s", tt.bad, s.log)
		}
	}
	if got := s.adjust(`[]`); got != `[]` {
		t.Errorf("adjust [] = %s", got)
	}
}

// TestAdjustProperties checks that properties of other providers are removed: the records would never have them, and
// external-dns would update them in every loop.
func TestAdjustProperties(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.token, "example.org.")
	got := s.adjust(`[{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"A",` +
		`"providerSpecific":[{"name":"aws/weight","value":"3"},{"name":"alias","value":"true"}]},` +
		`{"dnsName":"bücher.example.org","targets":["192.0.2.1"],"recordType":"A"}]`)
	want := `[{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"A"},` +
		`{"dnsName":"bücher.example.org","targets":["192.0.2.1"],"recordType":"A"}]`
	if got != want {
		t.Errorf("adjusted\n%s\nwant\n%s", got, want)
	}
	s.apply(http.StatusNoContent, `{"create":`+got+`}`)
	s.mustHave(`[{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"A"},` +
		`{"dnsName":"xn--bcher-kva.example.org","targets":["192.0.2.1"],"recordType":"A"}]`)
}

// TestManyDropped checks that a request with many bad endpoints does not fill the log.
func TestManyDropped(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.adjust(`[` + strings.Repeat(`{"dnsName":"a.test","targets":["192.0.2.1"],"recordType":"A"},`, 999) + `null]`)
	if n := strings.Count(s.log.String(), "\n"); n > 30 || !strings.Contains(s.log.String(), "count=980") {
		t.Errorf("%d lines: %s", n, s.log)
	}
}

func TestApexAlias(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	zone := s.zone(s.token, "example.org.")
	const apex = `[{"dnsName":"example.org","targets":["lb.example.net"],"recordType":"CNAME",` +
		`"providerSpecific":[{"name":"alias","value":"true"}]}]`
	if got := s.adjust(apex); got != apex {
		t.Errorf("adjust = %s, want it unchanged", got)
	}
	s.apply(http.StatusNoContent, `{"create":`+apex+`}`)
	s.mustHave(apex)
	if w := s.send(s.zones, s.token, "GET", zone+"/recordsets?type=ALIAS", ""); !strings.Contains(w.Body.String(),
		`"records":["lb.example.net."]`) {
		t.Errorf("the zone has no ALIAS: %s", w.Body)
	}
	const address = `[{"dnsName":"example.org","targets":["192.0.2.1"],"recordType":"A"}]`
	s.apply(http.StatusNoContent, `{"delete":`+apex+`,"create":`+address+`}`)
	s.mustHave(address)
}

// TestOneZoneFails checks that a zone is changed completely or not at all, and that the others are committed.
func TestOneZoneFails(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	zone := s.zone(s.token, "example.org.")
	s.zone(s.token, "example.net.")
	s.recordSet(zone, "www.example.org.", "A", "192.0.2.9")
	w := s.apply(http.StatusInternalServerError, `{"create":[
		{"dnsName":"first.example.org","targets":["192.0.2.1"],"recordType":"A"},
		{"dnsName":"www.example.net","targets":["192.0.2.1"],"recordType":"A"}],
		"updateOld":[{"dnsName":"www.example.org","targets":["192.0.2.1"],"recordType":"A"}],
		"updateNew":[{"dnsName":"www.example.org","targets":["192.0.2.2"],"recordType":"A"}]}`)
	if body := w.Body.String(); !strings.Contains(body, "zone example.org.: www.example.org. A has other records") ||
		strings.Contains(body, "example.net") {
		t.Errorf("body %s, want it to name the zone and the record set", body)
	}
	s.mustHave(`[{"dnsName":"www.example.net","targets":["192.0.2.1"],"recordType":"A"},` +
		`{"dnsName":"www.example.org","targets":["192.0.2.9"],"recordType":"A"}]`)
}

// TestConflicts checks that records which another client has changed meanwhile are not overwritten or deleted.
func TestConflicts(t *testing.T) {
	const (
		now   = `{"dnsName":"www.example.org","targets":["192.0.2.9"],"recordType":"A"}`
		old   = `{"dnsName":"www.example.org","targets":["192.0.2.1"],"recordType":"A"}`
		next  = `{"dnsName":"www.example.org","targets":["192.0.2.2"],"recordType":"A"}`
		cname = `{"dnsName":"www.example.org","targets":["lb.example.net"],"recordType":"CNAME"}`
	)
	s := newServer(t, publish.DefaultQuotas())
	s.recordSet(s.zone(s.token, "example.org."), "www.example.org.", "A", "192.0.2.9")
	for _, changes := range []string{
		`{"updateOld":[` + old + `],"updateNew":[` + next + `]}`, `{"updateNew":[` + next + `]}`,
		`{"delete":[` + old + `]}`, `{"create":[` + next + `]}`, `{"create":[` + cname + `]}`,
	} {
		s.apply(http.StatusInternalServerError, changes)
		s.mustHave(`[` + now + `]`)
	}
	// The reply to the first of two equal requests may be lost.
	for range 2 {
		s.apply(http.StatusNoContent, `{"updateOld":[`+now+`],"updateNew":[`+next+`]}`)
	}
	for range 2 {
		s.apply(http.StatusNoContent, `{"delete":[`+next+`]}`)
	}
	for range 2 {
		s.apply(http.StatusNoContent, `{"create":[`+cname+`]}`)
	}
	s.mustHave(`[` + cname + `]`)
}

// TestDividedText checks that external-dns can delete a text that another client has written as several strings.
func TestDividedText(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.recordSet(s.zone(s.token, "example.org."), "a.example.org.", "TXT", `"a" "b"`)
	const text = `[{"dnsName":"a.example.org","targets":["\"ab\""],"recordType":"TXT"}]`
	s.mustHave(text)
	s.apply(http.StatusNoContent, `{"delete":`+text+`}`)
	s.mustHave(`[]`)
}

// TestError checks that client errors of other parts, such as the check of the Host header, become server errors.
func TestError(t *testing.T) {
	for status, want := range map[int]int{400: 500, 404: 500, 421: 500, 401: 401, 403: 403, 413: 413, 503: 503} {
		w := httptest.NewRecorder()
		externaldns.Error(w, httptest.NewRequest("GET", "/", nil), status, "detail")
		if w.Code != want {
			t.Errorf("Error with %d sends %d, want %d", status, w.Code, want)
		}
	}
}

// TestOwnershipRecords sends what the TXT registry of external-dns v0.14 writes without --txt-prefix: an ownership
// record at the name of a CNAME, and one at a name with other TXT records. Neither stops the rest.
func TestOwnershipRecords(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	zone := s.zone(s.token, "example.org.")
	s.recordSet(zone, "example.org.", "TXT", `"v=spf1 -all"`)
	const owner = `"targets":["\"heritage=external-dns,external-dns/owner=default\""],"recordType":"TXT"}`
	s.apply(http.StatusNoContent, `{"Create":[
		{"dnsName":"www.example.org","targets":["lb.example.net"],"recordType":"CNAME"},
		{"dnsName":"www.example.org",`+owner+`, {"dnsName":"cname-www.example.org",`+owner+`,
		{"dnsName":"example.org","targets":["192.0.2.1"],"recordType":"A"},
		{"dnsName":"example.org",`+owner+`, {"dnsName":"a-example.org",`+owner+`, {"dnsName":"a-*.example.org",`+owner+`]}`)
	s.mustHave(`[{"dnsName":"example.org","targets":["192.0.2.1"],"recordType":"A"},` +
		`{"dnsName":"example.org","targets":["\"v=spf1 -all\""],"recordType":"TXT"},` +
		`{"dnsName":"a-*.example.org",` + owner + `,{"dnsName":"cname-www.example.org",` + owner + `,` +
		`{"dnsName":"www.example.org","targets":["lb.example.net"],"recordType":"CNAME"}]`)
	if s.dropped("beside") != 1 || s.dropped("taken") != 1 || s.dropped("zone") != 1 {
		t.Errorf("dropped: %s", s.log)
	}
}

// TestLongText checks that a text of more than 255 bytes comes back as one string.
func TestLongText(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.token, "example.org.")
	long := `"\"heritage=external-dns,` + strings.Repeat("x", 400) + `\""`
	two := `"\"` + strings.Repeat("z", 255) + `\" \"z\""`
	for _, text := range []string{long, `"` + strings.Repeat("y", 600) + `"`, two} {
		got := s.adjust(`[{"dnsName":"a.example.org","targets":[` + text + `],"recordType":"TXT"}]`)
		if strings.Contains(got, `\" \"`) {
			t.Errorf("adjusted to several strings: %s", got)
		}
		s.apply(http.StatusNoContent, `{"create":`+got+`}`)
		s.mustHave(got)
		s.apply(http.StatusNoContent, `{"delete":`+got+`}`)
		s.mustHave(`[]`)
	}
}

// TestStatuses checks that only credentials, methods and sizes get a 4xx, which ends external-dns.
func TestStatuses(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	reader, _ := s.Token(t, "reader", "team", access.RoleReader)
	huge := strings.Repeat(" ", 33<<20)
	for _, tt := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"", "GET", "/", "", 401}, {"np_wrong", "GET", "/records", "", 401}, {"", "POST", "/records", "{}", 401},
		{reader, "GET", "/", "", 403}, {reader, "POST", "/records", "{}", 403},
		{s.token, "POST", "/", "{}", 405}, {s.token, "PUT", "/records", "{}", 405},
		{s.token, "GET", "/adjustendpoints", "", 405}, {s.token, "DELETE", "/records", "", 405},
		{s.token, "POST", "/records", huge, 413}, {s.token, "POST", "/adjustendpoints", huge, 413},
		{s.token, "POST", "/records", "", 500}, {s.token, "POST", "/records", "{", 500},
		{s.token, "POST", "/records", "[]", 500}, {s.token, "POST", "/records", `{"create":[{"dnsName":7}]}`, 500},
		{s.token, "POST", "/records", `{"create":[],"Create":[]}`, 500}, {s.token, "POST", "/adjustendpoints", "{}", 500},
		{s.token, "GET", "/zones", "", 501}, {s.token, "POST", "/records/x", "{}", 501},
		{s.token, "POST", "/records", "{}", 204}, {s.token, "POST", "/records", "null", 204},
		{s.token, "GET", "/", "", 200}, {s.token, "HEAD", "/records", "", 200},
	} {
		if w := s.send(s.webhook, tt.token, tt.method, tt.path, tt.body); w.Code != tt.want {
			t.Errorf("%s %s %.40s = %d %s, want %d", tt.method, tt.path, tt.body, w.Code, w.Body, tt.want)
		}
	}
}

// TestQuota checks that the quotas of the project apply, that nothing of a zone above its quota is changed, and that
// the history names the token.
func TestQuota(t *testing.T) {
	q := publish.DefaultQuotas()
	q.ZoneRecordsets = 10
	s := newServer(t, q)
	zone := s.zone(s.token, "example.org.")
	var list []string
	for i := range 9 {
		list = append(list, fmt.Sprintf(`{"dnsName":"h%d.example.org","targets":["192.0.2.1"],"recordType":"A"}`, i))
	}
	w := s.apply(http.StatusInternalServerError, `{"create":[`+strings.Join(list, ",")+`]}`)
	if !strings.Contains(w.Body.String(), "Quota exceeded for zone_recordsets") {
		t.Errorf("body %s", w.Body)
	}
	s.mustHave(`[]`)
	s.apply(http.StatusNoContent, `{"create":[`+strings.Join(list[:8], ",")+`]}`)
	history := s.send(s.zones, s.token, "GET", zone+"/history", "").Body.String()
	if !strings.Contains(history, "token external-dns") || !strings.Contains(history, "externaldns") {
		t.Errorf("history %s, want the token and the API", history)
	}
	if !strings.Contains(s.log.String(), "msg=audit method=POST path=/records status=204 who=\"token external-dns\"") {
		t.Errorf("no audit line: %s", s.log)
	}
}

// TestOtherProjects checks that a token reads and changes only the zones of its project, also below its own zones.
func TestOtherProjects(t *testing.T) {
	s := newServer(t, publish.DefaultQuotas())
	s.zone(s.Admin, "example.com.")
	sub := s.zone(s.token, "sub.example.net.")
	s.zone(s.token, "example.net.")
	s.give(sub)
	s.apply(http.StatusNoContent, `{"create":[
		{"dnsName":"www.example.com","targets":["192.0.2.1"],"recordType":"A"},
		{"dnsName":"www.sub.example.net","targets":["192.0.2.1"],"recordType":"A"}]}`)
	s.mustHave(`[]`)
	w := s.send(s.webhook, s.Admin, "GET", "/records", "")
	if w.Body.String() != `[]` {
		t.Errorf("the other project has %s", w.Body)
	}
	if s.dropped("zone") != 2 {
		t.Errorf("dropped: %s", s.log)
	}
}

// FuzzBodies sends any body to both routes. Whatever it is, external-dns must not end, a request with an error must not
// change the zone, and the records that remain can be sent back.
func FuzzBodies(f *testing.F) {
	s := newServer(f, publish.DefaultQuotas())
	s.zone(s.token, "example.org.")
	for _, seed := range []string{`[]`, `{}`, `[null]`,
		`[{"dnsName":"a.example.org","targets":["192.0.2.1"],"recordType":"A","recordTTL":-1}]`,
		`{"Create":[{"dnsName":"a.example.org","targets":["\"a\" \"b\\000\\\"\""],"recordType":"TXT"}]}`,
		`{"create":[{"dnsName":"*.example.org","targets":["0 ."],"recordType":"MX","recordTTL":9223372036854775807}]}`,
		`{"create":[{"dnsName":"ÿ.example.org","targets":["\\# 0"],"recordType":"TYPE65400"}],"delete":[null]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		s.t = t
		for _, path := range []string{"/records", "/adjustendpoints"} {
			before := s.serial("example.org.")
			w := s.send(s.webhook, s.token, "POST", path, body)
			if w.Code >= 300 && w.Code != 500 {
				t.Fatalf("POST %s %q = %d %s", path, body, w.Code, w.Body)
			}
			if after := s.serial("example.org."); w.Code >= 300 && after != before {
				t.Fatalf("POST %s %q = %d, and the serial changes from %d to %d", path, body, w.Code, before, after)
			}
		}
		list := s.send(s.webhook, s.token, "GET", "/records", "").Body.String()
		if w := s.send(s.webhook, s.token, "POST", "/adjustendpoints", list); w.Body.String() != list {
			t.Fatalf("records\n%s\nadjusted\n%s", list, w.Body)
		}
		if w := s.send(s.webhook, s.token, "POST", "/records", `{"delete":`+list+`}`); w.Code != 204 {
			t.Fatalf("delete %s = %d %s", list, w.Code, w.Body)
		}
	})
}
