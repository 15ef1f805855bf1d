package mec

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/test/server"
)

// events reads n changes of a stream and returns them as "KIND STATE".
func (s *node) events(n int, url string, headers ...string) (changes []string, last string) {
	s.t.Helper()
	ctx, leave := context.WithTimeout(s.t.Context(), server.Patience)
	defer leave()
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := s.Client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for len(changes) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			last = id
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			changes = append(changes, member(data, "changeType")+" "+member(data, "state"))
		}
	}
	return changes, last
}

// member returns the value of a string member anywhere in JSON.
func member(json, name string) string {
	_, rest, _ := strings.Cut(json, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// TestWatchAcrossRestart resumes a stream after the server was killed, and must miss no event.
func TestWatchAcrossRestart(t *testing.T) {
	dir := server.Dir(t)
	s := start(t, dir, settings)
	token := s.appToken("app1")
	s.want(201, "POST "+s.MEP+"/mep/config/app1/dns_rules", rule("r", "www.example.com", "192.0.2.1", ""))
	got, last := s.events(1, s.Apps+"/applications/app1/dns_rules/events", token, "Last-Event-ID: 0")
	if strings.Join(got, ", ") != "CREATED ACTIVE" {
		t.Fatalf("events %v", got)
	}
	s.want(200, "PUT "+s.MEP+"/mep/config/app1/dns_rules/r", `{"state":"INACTIVE"}`)
	s.End(syscall.SIGKILL)
	s = start(t, dir, settings)
	s.want(204, "DELETE "+s.MEP+"/mep/config/app1", "")
	token = s.appToken("app1") // the termination of the application revoked the previous one
	got, _ = s.events(2, s.Apps+"/applications/app1/dns_rules/events", token, "Last-Event-ID: "+last)
	if strings.Join(got, ", ") != "UPDATED INACTIVE, DELETED INACTIVE" {
		t.Errorf("events %v", got)
	}
}

// TestStopEndsStreams checks that a server that stops does not wait for watchers.
func TestStopEndsStreams(t *testing.T) {
	s := start(t, "", settings)
	res, err := s.Client.Get(s.MEP + "/mep/config/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.Log())
	}
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Errorf("the stream ended with %v", err)
	}
}

// TestCallback subscribes to changes and receives them at a callback, also those from before a failed attempt.
func TestCallback(t *testing.T) {
	s := start(t, "", settings+"mec: {callbacks: {networks: [127.0.0.0/8]}}\n")
	token := s.appToken("app1")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	failures := 1 // the first attempt is refused
	receiver := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if failures > 0 {
			failures--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		b, _ := io.ReadAll(r.Body)
		got <- member(string(b), "changeType") + " " + member(string(b), "state")
	})}
	go func() { _ = receiver.Serve(listener) }()
	t.Cleanup(func() { _ = receiver.Close() })
	subs := s.Apps + "/mec_app_support/v1/applications/app1/subscriptions"
	sub := func(uri string) string {
		return `{"subscriptionType":"DnsRuleChangeNotificationSubscription","callbackReference":"` + uri + `"}`
	}
	s.want(400, "POST "+subs, sub("http://192.0.2.1/"), token)
	made := s.want(201, "POST "+subs, sub("http://"+listener.Addr().String()+"/cb"), token)
	s.want(201, "POST "+s.MEP+"/mep/config/app1/dns_rules", rule("r", "www.example.com", "192.0.2.1", ""))
	s.want(200, "PUT "+s.MEP+"/mep/config/app1/dns_rules/r", `{"state":"INACTIVE"}`)
	for _, want := range []string{"CREATED ACTIVE", "UPDATED INACTIVE"} {
		if n := <-got; n != want {
			t.Errorf("notification %q, want %q", n, want)
		}
	}
	if self := made.Header.Get("Location"); !strings.HasPrefix(self, subs+"/") {
		t.Errorf("Location %s", self)
	}
	s.want(204, "DELETE "+made.Header.Get("Location"), "", token)
}
