package designate_test

import (
	"bytes"
	stdcmp "cmp"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/store/storetest"
	"github.com/nameplane/nameplane/internal/transfer"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// server is the API with a store of its own.
type server struct {
	t       testing.TB
	handler http.Handler
	api     *designate.API
	pub     *publish.Publisher
	st      store.Store
	reads   *storetest.Counted
	stop    func()        // makes the store refuse changes
	log     *bytes.Buffer // the log of the API
}

func newServer(t testing.TB, settings designate.Settings) *server {
	return newLimitedServer(t, settings, publish.DefaultQuotas(), nil)
}

// newLimitedServer is newServer with the given default quotas and memory budget.
func newLimitedServer(t testing.TB, settings designate.Settings, q publish.Quotas, b *budget.Budget) *server {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reads := storetest.Count(st)
	aliases := alias.New(alias.Options{})
	pub, err := publish.Open(reads, publish.Options{Derive: aliases.Derive, Quotas: q})
	if err == nil {
		err = aliases.Open(pub)
	}
	if err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	api := &designate.API{Publisher: pub, Aliases: aliases, Peers: noPeers, Settings: complete(t, settings),
		Budget: b, Log: slog.New(slog.NewTextHandler(log, nil))}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{pub.Run, aliases.Run, api.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop := func() { cancel(); running.Wait() }
	t.Cleanup(func() {
		stop()
		st.Close()
	})
	return &server{t: t, handler: api.Handler(), api: api, pub: pub, st: st, reads: reads, stop: stop, log: log}
}

// noPeers are the Peers of a server without other servers.
var noPeers = designate.Peers{
	Progress: func(uuid.UUID) []transfer.Progress { return nil },
	Refresh:  func(uuid.UUID, bool) {},
	Copy:     func(uuid.UUID) transfer.Copy { return transfer.Copy{} },
}

// complete returns the settings with values for those that the test does not set.
func complete(t testing.TB, s designate.Settings) designate.Settings {
	t.Helper()
	if s.Nameservers == nil {
		s.Nameservers = []designate.Nameserver{{Hostname: dnsname.MustParse("ns1.example.net."), Priority: 1},
			{Hostname: dnsname.MustParse("ns2.example.net."), Priority: 2}}
	}
	s.BaseURL = stdcmp.Or(s.BaseURL, "http://dns.test")
	s.DefaultTTL, s.MaxImport = designate.DefaultTTL, stdcmp.Or(s.MaxImport, designate.DefaultMaxImport)
	if s.Spool == nil {
		var err error
		if s.Spool, err = os.OpenRoot(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Spool.Close() })
	}
	return s
}

// quotas returns the default quotas with a change.
func quotas(change func(*publish.Quotas)) publish.Quotas {
	q := publish.DefaultQuotas()
	change(&q)
	return q
}

// The callers of the tests.
var (
	alice = httpapi.Caller{Who: "token alice", Project: "p1", Roles: []string{"member"}}
	carol = httpapi.Caller{Who: "token carol", Project: "p1", Roles: []string{"reader"}}
	bob   = httpapi.Caller{Who: "token bob", Project: "p2", Roles: []string{"member"}}
	admin = httpapi.Caller{Who: "token admin", Project: "p0", Roles: []string{"admin"}}
)

// as returns the handler inside a Frame in which every request comes from one caller. The Frame admits callers
// without a role, because the API has a check of its own.
func as(who httpapi.Caller, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpapi.Frame{Areas: []httpapi.Area{{Prefix: "/", Roles: who.Roles, Error: httpapi.Error}},
			Public: []string{r.URL.Path}, Limits: httpapi.Limits{Body: 1 << 30},
			Identify: func(*http.Request) (httpapi.Caller, error) { return who, nil }}.Wrap(h).ServeHTTP(w, r)
	})
}

// request is a request of a test: "METHOD /path", a body, and headers as "Name: value".
type request struct {
	as      httpapi.Caller
	call    string
	body    string
	headers []string
}

type response struct {
	*httptest.ResponseRecorder
	json map[string]any
}

func (s *server) do(r request) response {
	method, path, _ := strings.Cut(r.call, " ")
	req := httptest.NewRequest(method, "http://dns.test"+path, strings.NewReader(r.body))
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range r.headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	rec := httptest.NewRecorder()
	as(r.as, s.handler).ServeHTTP(rec, req)
	res := response{ResponseRecorder: rec}
	_ = json.Unmarshal(rec.Body.Bytes(), &res.json)
	return res
}

// want sends a request whose reply must have this status.
func (s *server) want(status int, r request) response {
	s.t.Helper()
	res := s.do(r)
	if res.Code != status {
		s.t.Fatalf("%s %s = %d %s, want %d", r.call, r.body, res.Code, res.Body, status)
	}
	return res
}

// as is want with fewer words.
func (s *server) as(who httpapi.Caller, status int, call, body string, headers ...string) response {
	s.t.Helper()
	return s.want(status, request{who, call, body, headers})
}

func (r response) str(key string) string {
	v, _ := r.json[key].(string)
	return v
}

// zone creates a zone of alice's and returns its path.
func (s *server) zone(name string) string {
	s.t.Helper()
	return s.zoneOf(alice, name)
}

func (s *server) zoneOf(who httpapi.Caller, name string) string {
	s.t.Helper()
	res := s.as(who, 202, "POST /v2/zones", `{"name":"`+name+`","email":"host.master@example.org"}`)
	return "/v2/zones/" + res.str("id")
}

// zonePath returns the path of a zone of alice's.
func (s *server) zonePath(name string) string {
	s.t.Helper()
	return "/v2/zones/" + s.as(alice, 200, "GET /v2/zones?name="+name, "").items("zones", "id")[0]
}

// set creates a record set and returns its path.
func (s *server) set(zone, name, typ string, records ...string) string {
	s.t.Helper()
	b, _ := json.Marshal(map[string]any{"name": name, "type": typ, "records": records})
	res := s.as(alice, 202, "POST "+zone+"/recordsets", string(b))
	return zone + "/recordsets/" + res.str("id")
}

// items returns the values of a field of all items in a list.
func (r response) items(key, field string) []string {
	list, _ := r.json[key].([]any)
	out := []string{}
	for _, item := range list {
		v, _ := item.(map[string]any)[field].(string)
		out = append(out, v)
	}
	return out
}

// Values that differ from run to run are replaced before a reply is compared with its golden file.
var volatile = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "UUID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}`), "TIME"},
	{regexp.MustCompile(`("serial(_from|_to)?": )[1-9]\d+`), "${1}1"},
	{regexp.MustCompile(`(example\.org\. )\d+ 3[56]\d\d 600`), "${1}SERIAL REFRESH 600"},
	{regexp.MustCompile(`("key": )"[A-Z0-9]{8}"`), `${1}"KEY"`},
	{regexp.MustCompile(`("hostname": )"[^".]+"`), `${1}"HOST"`},
}

func (s *server) golden(name string, res response) {
	s.t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, res.Body.Bytes(), "", "  "); err != nil {
		s.t.Fatalf("%s: %v: %s", name, err, res.Body)
	}
	got := out.String()
	for _, v := range volatile {
		got = v.re.ReplaceAllString(got, v.to)
	}
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}
