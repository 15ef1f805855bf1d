package explainapi_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/explainapi"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// rig is the API with a scanner that reports a lame server, and then waits until gate is closed.
type rig struct {
	accesstest.Rig
	server *httptest.Server
	gate   chan struct{}
	large  func(*explain.Facts) // if set, changes the result of a scan
}

func newRig(t *testing.T, o scans.Options) *rig {
	t.Helper()
	r := &rig{Rig: accesstest.Open(t, nil), gate: make(chan struct{})}
	o.Parse = func(s string) (dnsname.Name, error) {
		n, err := dnsname.Parse(s)
		return n, err
	}
	service, err := scans.Open(r.Pub, r.scan, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- service.Run(ctx) }()
	mux := http.NewServeMux()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	explainapi.API{Scans: service, Resolvers: resolvers.Load(), Log: log}.Register(mux)
	r.server = httptest.NewServer(httpapi.Frame{Access: r.Access}.Wrap(mux))
	t.Cleanup(func() { r.server.Close(); stop(); <-ended })
	return r
}

func (r *rig) scan(ctx context.Context, name dnsname.Name, req scans.Request, _ []explain.Past,
	progress func(scans.Progress)) (*explain.Facts, error) {
	ns := dnsname.MustParse("ns1." + name.String())
	f := &explain.Facts{Schema: explain.Schema, Kind: req.Kind, Name: name, Zone: name, At: time.Now(),
		Zones: []iterate.Zone{{Name: name, ParentNS: []iterate.NSSet{{NS: []dnsname.Name{ns}, TTL: 300}}}},
		Servers: []explain.Server{{Zone: name, Host: ns, Addr: netip.MustParseAddr("93.184.1.1"), Listed: []string{"parent"},
			Class:  iterate.LameRefused,
			Health: iterate.Up, Sent: 1}}}
	progress(scans.Progress{Step: "walk", Queries: 7, Facts: f})
	select {
	case <-r.gate:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if r.large != nil {
		r.large(f)
	}
	return f, nil
}

func (r *rig) do(t *testing.T, token, method, path, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", token)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// start starts a scan and returns its path.
func (r *rig) start(t *testing.T, target string) string {
	t.Helper()
	return r.startAs(t, r.Admin, target)
}

func (r *rig) startAs(t *testing.T, token, target string) string {
	t.Helper()
	res := r.do(t, token, "POST", "/explain/v1/scans", `{"kind":"scan","target":"`+target+`"}`)
	var x struct{ ID string }
	if err := json.NewDecoder(res.Body).Decode(&x); err != nil || res.StatusCode != http.StatusAccepted ||
		!strings.HasSuffix(res.Header.Get("Location"), x.ID) {
		t.Fatalf("start: %d, %v, at %s", res.StatusCode, err, res.Header.Get("Location"))
	}
	return "/explain/v1/scans/" + x.ID
}

// TestEvents checks that a finding is streamed before the scan has ended.
func TestEvents(t *testing.T) {
	r := newRig(t, scans.Options{})
	path := r.start(t, "example.org")
	lines := bufio.NewScanner(r.do(t, r.Admin, "GET", path+"/events", "").Body)
	lines.Buffer(nil, 1<<20)
	var kinds []string
	open := false
	for lines.Scan() {
		kind, ok := strings.CutPrefix(lines.Text(), "event: ")
		if !ok {
			continue
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
		if kind == "finding" && !open {
			if res := r.do(t, r.Admin, "GET", path+"/report", ""); res.StatusCode != http.StatusNotFound {
				t.Errorf("the report of a scan that runs: %d", res.StatusCode)
			}
			close(r.gate)
			open = true
		}
	}
	got := strings.Join(kinds, " ")
	if !strings.HasSuffix(got, "done") || !strings.Contains(got, "progress") ||
		strings.Index(got, "finding") > strings.Index(got, "done") {
		t.Errorf("events are %s", got)
	}
	res := r.do(t, r.Admin, "GET", path+"/report?format=ics", "")
	if body, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusNotFound ||
		!strings.Contains(string(body), "there is no plan") {
		t.Errorf("the calendar of a scan without a plan: %d %s", res.StatusCode, body)
	}
	if res := r.do(t, r.Admin, "GET", path+"/report?format=text", ""); res.StatusCode != http.StatusOK ||
		!strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("the report: %d %s", res.StatusCode, res.Header)
	}
}

func TestStrangers(t *testing.T) {
	r := newRig(t, scans.Options{Public: true})
	close(r.gate)
	path := r.start(t, "example.org")
	other := r.Project(t, "other")
	member, _ := r.Token(t, "theirs", other.ID, "member")
	for _, p := range []string{path, path + "/events", path + "/raw", path + "/diff", path + "/report"} {
		if res := r.do(t, member, "GET", p, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("another project's %s: %d", p, res.StatusCode)
		}
	}
	if res := r.do(t, r.Admin, "POST", "/explain/v1/scans",
		`{"kind":"scan","target":"printer.local"}`); res.StatusCode != http.StatusForbidden {
		t.Errorf("a private name: %d", res.StatusCode)
	}
	for _, body := range []string{"", "[]", `{"kind":"scan"}`, `{"kind":"scan","target":7}`,
		`{"kind":"scan","target":"a.test","colour":1}`, `{"kind":"scan","target":"a.test"} x`,
		`{"kind":"scan","target":"printer.local","target":"a.test"}`} {
		if res := r.do(t, r.Admin, "POST", "/explain/v1/scans", body); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d", body, res.StatusCode)
		}
	}
	if res := r.do(t, "", "GET", "/explain/v1/checks", ""); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody: %d", res.StatusCode)
	}
}

// TestTags checks that the ETag is a digest of the body.
func TestTags(t *testing.T) {
	r := newRig(t, scans.Options{})
	close(r.gate)
	path := r.start(t, "example.org")
	_, _ = io.Copy(io.Discard, r.do(t, r.Admin, "GET", path+"/events", "").Body) // until the scan has ended
	tags := map[string]string{}
	for _, p := range []string{path, path + "/report", path + "/report?format=text", path + "/report?format=markdown",
		path + "/report?format=junit", path + "/raw"} {
		res := r.do(t, r.Admin, "GET", p, "")
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		tag := res.Header.Get("ETag")
		sum := sha256.Sum256(body)
		if want := fmt.Sprintf(`"%x"`, sum[:16]); tag != want || tags[tag] != "" {
			t.Errorf("%s: tag %s, want %s; %s has the same", p, tag, want, tags[tag])
		}
		tags[tag] = p
		for given, want := range map[string]int{tag: 304, "W/" + tag: 304, `"x", ` + tag: 304, "*": 304, `"x"`: 200} {
			if res := r.doIf(t, p, given); res.StatusCode != want || res.Header.Get("ETag") != tag {
				t.Errorf("%s if none matches %s: %d %s", p, given, res.StatusCode, res.Header.Get("ETag"))
			}
		}
	}
}

// doIf sends a GET request with If-None-Match.
func (r *rig) doIf(t *testing.T, path, tag string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Auth-Token", r.Admin)
	req.Header.Set("If-None-Match", tag)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
