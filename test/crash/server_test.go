// Package crash kills and attacks a running server, fills its disk and damages its store, and checks that it kept what
// it acknowledged. Start with TestKill in kill_test.go.
package crash

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// node is a server with the helpers of this test suite.
type node struct{ *server.Server }

// launch starts a server on a data directory and does not wait for it.
func launch(t *testing.T, data string, args ...string) *node {
	t.Helper()
	return &node{server.Launch(t, server.Options{Dir: filepath.Dir(data), Args: args})}
}

// start starts a server and waits until it serves.
func start(t *testing.T, data string, args ...string) *node {
	t.Helper()
	s := launch(t, data, args...)
	s.Ready()
	return s
}

// zone is a zone of the API, with the fields that the tests use.
type zone struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Serial uint32 `json:"serial"`
}

// recordSet is a record set of the API, with the fields that the tests use.
type recordSet struct {
	ID      string   `json:"id,omitempty"`
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Records []string `json:"records"`
}

func (s *node) createZone(t *testing.T, name string) zone {
	t.Helper()
	var z zone
	s.Must(http.MethodPost, "/v2/zones", map[string]string{"name": name, "email": "admin@example.org"}, &z)
	return z
}

// setsOf returns the record sets of one type in a zone, by name.
func (s *node) setsOf(t *testing.T, z zone, typ string) map[string]recordSet {
	t.Helper()
	out := map[string]recordSet{}
	path := "/v2/zones/" + z.ID + "/recordsets?limit=1000&type=" + typ
	for path != "" {
		var page struct {
			RecordSets []recordSet `json:"recordsets"`
			Links      struct{ Next string }
		}
		s.Must(http.MethodGet, path, nil, &page)
		for _, r := range page.RecordSets {
			out[r.Name] = r
		}
		path = strings.TrimPrefix(page.Links.Next, s.HTTP)
	}
	return out
}

// asker sends queries to one server over UDP.
type asker struct {
	conn   *dns.Conn
	client dns.Client
}

func newAsker(t *testing.T, addr string) *asker {
	t.Helper()
	conn, err := dns.DialTimeout("udp", addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &asker{conn: conn, client: dns.Client{Timeout: 5 * time.Second, UDPSize: 1232}}
}

func (a *asker) ask(name string, typ uint16) (*dns.Msg, error) {
	m := new(dns.Msg).SetQuestion(name, typ).SetEdns0(1232, false)
	r, _, err := a.client.ExchangeWithConn(m, a.conn)
	return r, err
}

// text returns the TXT record of a name, or "".
func (a *asker) text(name string) (string, error) {
	r, err := a.ask(name, dns.TypeTXT)
	if err != nil {
		return "", err
	}
	switch {
	case r.Rcode == dns.RcodeNameError || r.Rcode == dns.RcodeSuccess && len(r.Answer) == 0:
		return "", nil
	case r.Rcode == dns.RcodeSuccess && len(r.Answer) == 1:
		return strings.Join(r.Answer[0].(*dns.TXT).Txt, ""), nil
	}
	return "", fmt.Errorf("%s TXT: %v", name, r)
}

// serial returns the served serial of a zone.
func (a *asker) serial(name string) (uint32, error) {
	r, err := a.ask(name, dns.TypeSOA)
	if err != nil {
		return 0, err
	}
	if len(r.Answer) != 1 {
		return 0, fmt.Errorf("%s SOA: %v", name, r)
	}
	return r.Answer[0].(*dns.SOA).Serial, nil
}

// mustText fails the test unless the server answers with the text.
func (s *node) mustText(t *testing.T, name, want string) {
	t.Helper()
	if got, err := newAsker(t, s.DNS[0]).text(name); err != nil || got != want {
		t.Errorf("%s TXT = %q, %v; want %q", name, got, err, want)
	}
}
