package mecapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/mec"
)

// stream is an event stream over a real connection.
type stream struct {
	t     *testing.T
	res   *http.Response
	lines *bufio.Scanner
}

// watch opens a stream as a caller.
func (s *server) watch(t *testing.T, who httpapi.Caller, path string, headers ...string) *stream {
	t.Helper()
	srv := httptest.NewServer(as(who, s.mux))
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(func() {
		leave()
		srv.Close()
	})
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	st := &stream{t, res, bufio.NewScanner(res.Body)}
	if res.StatusCode == http.StatusOK {
		if first := st.next(); first["retry"] == "" {
			t.Fatalf("the stream begins with %v", first)
		}
	}
	return st
}

// next reads one event or comment and returns its fields.
func (s *stream) next() map[string]string {
	s.t.Helper()
	fields := map[string]string{}
	for s.lines.Scan() {
		if s.lines.Text() == "" {
			return fields
		}
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		fields[name] = strings.TrimPrefix(value, " ")
	}
	s.t.Fatalf("the stream ended with %v: %v", fields, s.lines.Err())
	return nil
}

// change reads one event and returns it as text, such as "CREATED app1 r1 ACTIVE".
func (s *stream) change() (string, string) {
	s.t.Helper()
	e := s.next()
	var n struct {
		Type     string `json:"notificationType"`
		Change   string `json:"changeType"`
		App      string `json:"appInstanceId"`
		Sequence json.Number
		Time     struct{ Seconds int64 } `json:"timeStamp"`
		Rule     struct {
			ID    string `json:"dnsRuleId"`
			State string
		} `json:"dnsRule"`
	}
	if err := json.Unmarshal([]byte(e["data"]), &n); err != nil {
		s.t.Fatalf("event %v: %v", e, err)
	}
	if n.Type != "DnsRuleChangeNotification" || e["event"] != n.Type || e["id"] != n.Sequence.String() ||
		n.Time.Seconds == 0 {
		s.t.Errorf("event %v", e)
	}
	return strings.Join([]string{n.Change, n.App, n.Rule.ID, n.Rule.State}, " "), e["id"]
}

func (s *stream) expect(want string) string {
	s.t.Helper()
	got, id := s.change()
	if got != want {
		s.t.Fatalf("event %q, want %q", got, want)
	}
	return id
}

func TestEventStreams(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	own := s.watch(t, app1, "/applications/app1/dns_rules/events")
	all := s.watch(t, platform, "/mep/config/events")
	if media := own.res.Header.Get("Content-Type"); media != "text/event-stream" {
		t.Errorf("media type %q", media)
	}
	other := strings.Replace(rule1, "www", "other", 1)
	s.rule("app2", other)
	s.as(app1, 200, "PUT "+path, strings.Replace(rule1, "ACTIVE", "INACTIVE", 1))
	s.as(platform, 204, "DELETE /mep/config/app1/dns_rules/r1", "")
	first := own.expect("UPDATED app1 r1 INACTIVE")
	own.expect("DELETED app1 r1 INACTIVE")
	for _, want := range []string{"CREATED app2 r1 ACTIVE", "UPDATED app1 r1 INACTIVE", "DELETED app1 r1 INACTIVE"} {
		all.expect(want)
	}
	again := s.watch(t, app1, "/mec_app_support/v1/applications/app1/dns_rules/events", "Last-Event-ID: "+first)
	again.expect("DELETED app1 r1 INACTIVE")
	asked := s.watch(t, platform, "/mep/config/events?after="+first)
	asked.expect("DELETED app1 r1 INACTIVE")

	s.as(app2, 403, "GET /applications/app1/dns_rules/events", "")
	s.as(app1, 403, "GET /mep/config/events", "")
	s.as(app1, 400, "GET /applications/app1/dns_rules/events", "", "Last-Event-ID: x")
	s.as(app1, 200, "HEAD /applications/app1/dns_rules/events", "")
}

// TestEventStreamsName checks that a rule with the id "events" can be read and changed.
func TestEventStreamsName(t *testing.T) {
	s := newServer(t, mecapi.API{})
	body := strings.Replace(rule1, `"r1"`, `"events"`, 1)
	path := s.rule("app1", body)
	s.want(s.as(app1, 200, "GET "+path, "", "Accept: application/json").json, body)
	s.want(s.as(app1, 200, "PUT "+path, body).json, body)
	s.want(s.as(platform, 200, "GET /mep/config/app1/dns_rules/events", "").json, body)
	s.as(app2, 404, "GET "+strings.Replace(path, "app1", "app2", 1), "", "Accept: application/json")
}

func TestEventGap(t *testing.T) {
	s := newServer(t, mecapi.API{})
	path := s.rule("app1", rule1)
	s.as(app1, 200, "PUT "+path, strings.Replace(rule1, "ACTIVE", "INACTIVE", 1))
	w := s.watch(t, app1, "/applications/app1/dns_rules/events", "Last-Event-ID: 7") // an id from another store
	if e := w.next(); e["event"] != "gap" || e["data"] != `{"after":7,"oldest":1}` {
		t.Errorf("event %v, want the gap", e)
	}
	w.expect("CREATED app1 r1 ACTIVE")
	w.expect("UPDATED app1 r1 INACTIVE")
}

// TestEventStreamsAreBounded opens streams up to the limit.
func TestEventStreamsAreBounded(t *testing.T) {
	s := newServer(t, mecapi.API{})
	for range 8 {
		s.watch(t, app1, "/applications/app1/dns_rules/events")
	}
	if st := s.watch(t, app1, "/applications/app1/dns_rules/events"); st.res.StatusCode != http.StatusTooManyRequests ||
		st.res.Header.Get("Retry-After") == "" {
		t.Errorf("the ninth stream of an application: %d", st.res.StatusCode)
	}
	for range 64 {
		if st := s.watch(t, platform, "/mep/config/events"); st.res.StatusCode != http.StatusOK {
			t.Fatalf("a stream of a platform: %d", st.res.StatusCode)
		}
	}
	if st := s.watch(t, platform, "/mep/config/events"); st.res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the stream after the 64th: %d", st.res.StatusCode)
	}
}

// TestEventStreamsEnd checks that streams end when Done is closed.
func TestEventStreamsEnd(t *testing.T) {
	done := make(chan struct{})
	s := startServer(t, mecapi.API{Done: done}, mec.Options{})
	w := s.watch(t, platform, "/mep/config/events")
	close(done)
	for w.lines.Scan() {
		t.Errorf("after the end: %q", w.lines.Text())
	}
	if err := w.lines.Err(); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestHeartbeat reads a stream without events for its whole life, in fake time.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, mecapi.API{})
		req := httptest.NewRequest("GET", "/mep/config/events", nil)
		w := httptest.NewRecorder()
		begin := time.Now()
		as(platform, s.mux).ServeHTTP(w, req.WithContext(t.Context()))
		if took := time.Since(begin); took != 15*time.Minute {
			t.Errorf("the stream lived %v", took)
		}
		if n := strings.Count(w.Body.String(), ":\n\n"); n < 57 || n > 61 {
			t.Errorf("%d signs of life, want one every 15 seconds", n)
		}
	})
}
