package powerdns_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/powerdns"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// server is both APIs for zones, with a store of their own.
type server struct {
	t       testing.TB
	handler http.Handler
	pub     *publish.Publisher
	api     *powerdns.API

	mu        sync.Mutex // guards the rest
	notified  []string   // zones for which NOTIFY was requested
	refreshed int        // transfers from masters that were requested
}

func newServer(t testing.TB) *server {
	return newLimited(t, publish.DefaultQuotas(), designate.Settings{}, nil)
}

// newLimited is newServer with other quotas, settings and memory budget.
func newLimited(t testing.TB, q publish.Quotas, settings designate.Settings, b *budget.Budget) *server {
	t.Helper()
	st, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), boltstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	aliases := alias.New(alias.Options{})
	pub, err := publish.Open(st, publish.Options{Derive: aliases.Derive, Quotas: q})
	if err == nil {
		err = aliases.Open(pub)
	}
	if err != nil {
		t.Fatal(err)
	}
	spool, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, pub: pub}
	settings.Nameservers = []designate.Nameserver{{Hostname: dnsname.MustParse("ns1.example.net."), Priority: 1},
		{Hostname: dnsname.MustParse("ns2.example.net."), Priority: 2}}
	settings.DefaultTTL, settings.MaxImport, settings.Spool = 3600, 1<<20, spool
	zones := &designate.API{Publisher: pub, Aliases: aliases, Settings: settings, Budget: b, Peers: designate.Peers{
		Progress: func(uuid.UUID) []transfer.Progress { return nil },
		Refresh:  func(uuid.UUID, bool) { s.locked(func() { s.refreshed++ }) },
		Copy:     func(uuid.UUID) transfer.Copy { return transfer.Copy{} },
	}}
	s.api = &powerdns.API{Publisher: pub, Zones: zones, Spool: spool, Log: slog.New(slog.DiscardHandler),
		Notify:     func(z zone.Zone) { s.locked(func() { s.notified = append(s.notified, z.Name.String()) }) },
		Statistics: func() map[string]uint64 { return map[string]uint64{"uptime": 7, "udp-queries": 3} }}
	mux := http.NewServeMux()
	s.api.Register(mux)
	mux.Handle("/", zones.Handler())
	s.handler = mux
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{pub.Run, aliases.Run, zones.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		running.Wait()
		st.Close()
		spool.Close()
	})
	return s
}

func (s *server) locked(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
}

// The callers of the tests.
var (
	alice = httpapi.Caller{Who: "token alice", Project: "p1", Roles: []string{"member", "reader"}}
	carol = httpapi.Caller{Who: "token carol", Project: "p1", Roles: []string{"reader"}}
	bob   = httpapi.Caller{Who: "token bob", Project: "p2", Roles: []string{"member", "reader"}}
	admin = httpapi.Caller{Who: "token admin", Project: "p0", Roles: []string{"admin", "member", "reader"}}
)

type response struct {
	*httptest.ResponseRecorder
	json map[string]any // nil when the body is no object
}

func (r response) message() string {
	s, _ := r.json["error"].(string)
	return s
}

const base = "/api/v1/servers/localhost"

// do sends "METHOD /path" below base, with headers as "Name: value".
func (s *server) do(who httpapi.Caller, call, body string, headers ...string) response {
	method, path, _ := strings.Cut(call, " ")
	if !strings.HasPrefix(path, "/api") && !strings.HasPrefix(path, "/v2") {
		path = base + path
	}
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	httpapi.Frame{Areas: httpapi.ManagementAreas(), Limits: httpapi.Limits{Body: 2 << 20, Budget: s.api.Zones.Budget},
		Identify: func(*http.Request) (httpapi.Caller, error) { return who, nil }}.Wrap(s.handler).ServeHTTP(w, req)
	res := response{ResponseRecorder: w}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		var v any
		if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
			s.t.Fatalf("%s: %v in %s", call, err, w.Body)
		}
		res.json, _ = v.(map[string]any)
	}
	return res
}

// want is do with the status that the reply must have.
func (s *server) want(status int, who httpapi.Caller, call, body string, headers ...string) response {
	s.t.Helper()
	res := s.do(who, call, body, headers...)
	if res.Code != status {
		s.t.Fatalf("%s %s = %d %s, want %d", call, body, res.Code, res.Body, status)
	}
	return res
}

// zone creates a zone of alice.
func (s *server) zone(name string) {
	s.t.Helper()
	s.want(201, alice, "POST /zones", `{"name":"`+name+`","kind":"Native","nameservers":["ns1.example.net."]}`)
}

// replace returns a PATCH that replaces one record set.
func replace(name, typ string, contents ...string) string {
	return patch("REPLACE", name, typ, contents...)
}

func patch(change, name, typ string, contents ...string) string {
	return `{"rrsets":[` + rrset(change, name, typ, contents...) + `]}`
}

func rrset(change, name, typ string, contents ...string) string {
	records := []map[string]any{}
	for _, c := range contents {
		records = append(records, map[string]any{"content": c, "disabled": false})
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]any{"changetype": change, "name": name, "type": typ, "ttl": 300,
		"records": records}); err != nil {
		panic(err)
	}
	return b.String()
}

// records returns the contents of a record set, in the order of the reply.
func (s *server) records(who httpapi.Caller, zone, name, typ string) (out []string) {
	s.t.Helper()
	res := s.want(200, who, "GET /zones/"+zone+"?rrset_name="+name+"&rrset_type="+typ, "")
	for _, set := range res.json["rrsets"].([]any) {
		for _, r := range set.(map[string]any)["records"].([]any) {
			out = append(out, r.(map[string]any)["content"].(string))
		}
	}
	return out
}

// serial returns the serial of a zone.
func (s *server) serial(t testing.TB, name string) uint32 {
	t.Helper()
	var z zone.Zone
	err := s.pub.View(func(v store.View) (err error) {
		z, err = v.ZoneByName(dnsname.MustParse(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return z.Serial
}
