package externaldns_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/access/accesstest"
	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// server is the webhook beside the zones API, with a store of its own.
type server struct {
	accesstest.Rig
	t       testing.TB
	webhook http.Handler
	zones   http.Handler
	api     *externaldns.API
	log     *bytes.Buffer
	token   string // of a member of the project "team"
}

func newServer(t testing.TB, q publish.Quotas) *server {
	t.Helper()
	aliases := alias.New(alias.Options{})
	s := &server{t: t, log: new(bytes.Buffer),
		Rig: accesstest.OpenWith(t, nil, publish.Options{Derive: aliases.Derive, Quotas: q})}
	if err := aliases.Open(s.Pub); err != nil {
		t.Fatal(err)
	}
	aliases.SetTracker(follow.New(follow.Options{Changed: aliases.Changed})) // it does not run, so lookups never end
	spool, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { spool.Close() })
	log := slog.New(slog.NewTextHandler(s.log, nil))
	zones := &designate.API{Publisher: s.Pub, Aliases: aliases, Log: log, Peers: designate.Peers{
		Refresh:  func(uuid.UUID, bool) {},
		Progress: func(uuid.UUID) []transfer.Progress { return nil },
		Copy:     func(uuid.UUID) transfer.Copy { return transfer.Copy{} }},
		Settings: designate.Settings{DefaultTTL: designate.DefaultTTL, MinTTL: 30, MaxImport: 1 << 20, Spool: spool,
			Nameservers: []designate.Nameserver{{Hostname: dnsname.MustParse("ns1.example.net."), Priority: 1}}}}
	s.api = externaldns.New(zones, log)
	mux := http.NewServeMux()
	s.api.Register(mux)
	mux.HandleFunc("/", externaldns.NotFound)
	s.webhook = httpapi.Frame{Listener: "externaldns", Access: s.Access, Log: log, NoLogin: true,
		Areas:  []httpapi.Area{{Prefix: "/", Roles: []string{access.RoleMember}, Error: externaldns.Error}},
		Limits: httpapi.Limits{Body: externaldns.MaxBody}}.Wrap(mux)
	s.zones = httpapi.Frame{Access: s.Access}.Wrap(zones.Handler())
	s.Project(t, "team")
	s.token, _ = s.Token(t, "external-dns", "team", access.RoleMember)
	return s
}

// send sends a request to a handler and returns the reply.
func (s *server) send(h http.Handler, token, method, path, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if token != "" {
		r.Header.Set("X-Auth-Token", token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// zone creates a zone of the project of a token and returns its path in the zones API.
func (s *server) zone(token, name string) string {
	s.t.Helper()
	w := s.send(s.zones, token, "POST", "/v2/zones", `{"name": "`+name+`", "email": "a@example.org"}`)
	var z struct{ ID string }
	if err := json.Unmarshal(w.Body.Bytes(), &z); err != nil || z.ID == "" {
		s.t.Fatalf("create zone %s: %d %s", name, w.Code, w.Body)
	}
	return "/v2/zones/" + z.ID
}

// give moves a zone to the project of the administrator, as if it had been there before the zones above it.
func (s *server) give(path string) {
	s.t.Helper()
	id := uuid.MustParse(strings.TrimPrefix(path, "/v2/zones/"))
	err := s.Pub.Commit(context.Background(), accesstest.Actor, func(tx *publish.Tx) error {
		z, err := tx.Zone(id)
		if err == nil {
			z.Project = "admin"
			_, err = tx.UpdateZone(z)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// recordSet creates a record set by the zones API.
func (s *server) recordSet(zone, name, typ, record string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"name": name, "type": typ, "records": []string{record}})
	if err != nil {
		s.t.Fatal(err)
	}
	if w := s.send(s.zones, s.token, "POST", zone+"/recordsets", string(body)); w.Code >= 300 {
		s.t.Fatalf("create %s %s: %d %s", name, typ, w.Code, w.Body)
	}
}

// apply sends changes, which must have a status.
func (s *server) apply(want int, changes string) *httptest.ResponseRecorder {
	s.t.Helper()
	w := s.send(s.webhook, s.token, "POST", "/records", changes)
	if w.Code != want {
		s.t.Fatalf("POST /records %s = %d %s, want %d", changes, w.Code, w.Body, want)
	}
	return w
}

// mustHave compares the records of the webhook with endpoints in JSON.
func (s *server) mustHave(want string) {
	s.t.Helper()
	w := s.send(s.webhook, s.token, "GET", "/records", "")
	if w.Code != http.StatusOK || w.Body.String() != want {
		s.t.Fatalf("GET /records = %d\n%s\nwant\n%s", w.Code, w.Body, want)
	}
}

// adjust sends endpoints and returns those that remain.
func (s *server) adjust(endpoints string) string {
	s.t.Helper()
	w := s.send(s.webhook, s.token, "POST", "/adjustendpoints", endpoints)
	if w.Code != http.StatusOK {
		s.t.Fatalf("POST /adjustendpoints %s = %d %s", endpoints, w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/external.dns.webhook+json;version=1" {
		s.t.Errorf("Content-Type %q", got)
	}
	return w.Body.String()
}

// dropped returns how many endpoints were left out for a reason.
func (s *server) dropped(reason string) float64 {
	s.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(s.api.Collectors()...)
	families, err := reg.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// serial returns the serial of a zone.
func (s *server) serial(name string) uint32 {
	s.t.Helper()
	var z zone.Zone
	err := s.Pub.View(func(v store.View) (err error) {
		z, err = v.ZoneByName(dnsname.MustParse(name))
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return z.Serial
}
