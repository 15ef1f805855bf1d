package powerdns_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
)

// generateBomb returns a request of 2 KiB that creates a zone with n records of 1,757 bytes.
func generateBomb(name string, n int) string {
	text := strings.TrimSpace(strings.Repeat(`"`+strings.Repeat("x", 250)+`" `, 7))
	line := fmt.Sprintf("$GENERATE 1-%d a$ 300 TXT %s\n", n, text)
	return fmt.Sprintf(`{"name":%q,"kind":"Native","zone":%q}`, name, line)
}

// TestGenerateBomb sends a line of a zone file that produces 35 MB within the quota of records. It must be refused
// while it is read: by the quota of bytes for a tenant, and by the memory budget for an administrator.
func TestGenerateBomb(t *testing.T) {
	s := newLimited(t, publish.DefaultQuotas(), designate.Settings{}, budget.New(128<<20))
	for _, tt := range []struct {
		who    httpapi.Caller
		status int
		want   string
	}{
		{alice, 422, "parsing the zonedata: 1:1: Quota exceeded for bytes of a zone"},
		{admin, 413, "raise the memory limit of the server"},
	} {
		if got := s.want(tt.status, tt.who, "POST /zones", generateBomb("example.org.", 19_990)).message(); !strings.Contains(
			got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.who.Who, got, tt.want)
		}
	}
	s.want(201, alice, "POST /zones", generateBomb("example.org.", 1000)) // it reads the text several times
	if got := s.records(alice, "example.org.", "a1000.example.org.", "TXT"); len(got) != 1 {
		t.Errorf("TXT %q", got)
	}
}

// TestQuotaComesFirst sends zones that exceed a quota, with a name that belongs to another zone. The quota must refuse
// them before that is found: while the sets are written, all other projects wait.
func TestQuotaComesFirst(t *testing.T) {
	q := publish.DefaultQuotas()
	q.ZoneRecordsets = 5
	s := newLimited(t, q, designate.Settings{}, nil)
	s.zone("below.example.org.")
	sets := []string{rrset("", "example.org.", "SOA", "ns1.example.net. a.example.org. 1 2 3 4 5")}
	for _, name := range []string{"x.below", "a", "b", "c", "d"} {
		sets = append(sets, rrset("", name+".example.org.", "A", "192.0.2.1"))
	}
	list := `"rrsets":[` + strings.Join(sets, ",") + `]`
	for _, call := range []string{"POST /zones", "PUT /zones/example.org."} {
		body := `{"name":"example.org.","kind":"Native",` + list + `}`
		if got := s.want(422, alice, call, body).message(); !strings.Contains(got, "Quota exceeded for zone_recordsets") {
			t.Errorf("%s: %s", call, got)
		}
		if strings.HasPrefix(call, "POST") {
			s.zone("example.org.")
		}
	}
}

// TestAdministratorHasNoRecordQuota checks that quotas of records are for tenants only, as in the zones API.
func TestAdministratorHasNoRecordQuota(t *testing.T) {
	q := publish.DefaultQuotas()
	q.ZoneRecordsets = 3
	s := newLimited(t, q, designate.Settings{}, nil)
	for _, tt := range []struct {
		who  httpapi.Caller
		zone string
		want int
	}{{alice, "example.org.", 422}, {admin, "example.net.", 204}} {
		s.want(201, tt.who, "POST /zones", `{"name":"`+tt.zone+`","kind":"Native","nameservers":[]}`)
		s.want(tt.want, tt.who, "PATCH /zones/"+tt.zone, `{"rrsets":[`+rrset("REPLACE", "a."+tt.zone, "A", "192.0.2.1")+","+
			rrset("REPLACE", "b."+tt.zone, "A", "192.0.2.1")+`]}`)
	}
}

// TestHostileSearch searches with a pattern that compares each record with each of its characters, and as a client that
// has gone. The first is refused, and the second must not read all records.
func TestHostileSearch(t *testing.T) {
	s := newServer(t)
	s.zone("example.org.")
	long := strings.Repeat("?", 900) + "b"
	if got := s.want(422, alice, "GET /search-data?q=*"+url.QueryEscape(long), "").message(); !strings.Contains(got,
		"longer than") {
		t.Error(got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(gone, "GET", base+"/search-data?q=*", nil)
	w := httptest.NewRecorder()
	httpapi.Frame{Areas: httpapi.ManagementAreas(),
		Identify: func(*http.Request) (httpapi.Caller, error) { return alice, nil }}.Wrap(s.handler).ServeHTTP(w, req)
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("the search of a client that has gone: %d %s", w.Code, w.Body)
	}
}

// TestSmallObjects sends the body that takes the most memory for each of its bytes. It must take memory from the budget
// for its objects, and not only for its bytes.
func TestSmallObjects(t *testing.T) {
	s := newLimited(t, publish.DefaultQuotas(), designate.Settings{}, budget.New(256<<20))
	deep := strings.Repeat(`{"":`, 12) + "0" + strings.Repeat("}", 12)
	list := strings.TrimSuffix(strings.Repeat(deep+",", 12_000), ",") // 0.7 MB, for which the budget has 23 MB
	got := s.want(413, alice, "POST /zones", `{"name":"example.org.","kind":"Native","rrsets":[`+list+`]}`).message()
	if !strings.Contains(got, "raise the memory limit of the server") {
		t.Error(got)
	}
}
