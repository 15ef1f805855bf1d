// Package externaldns tests the webhook of a running server with the webhook client of external-dns.
//
// Start with Run. Each version of external-dns needs a module of its own: test/clients/externaldns and
// test/clients/externaldns014 connect the client of their version to Run.
package externaldns

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// Endpoint is an endpoint of external-dns. All versions have the same JSON form.
type Endpoint struct {
	DNSName          string            `json:"dnsName,omitempty"`
	Targets          []string          `json:"targets,omitempty"`
	RecordType       string            `json:"recordType,omitempty"`
	SetIdentifier    string            `json:"setIdentifier,omitempty"`
	RecordTTL        int64             `json:"recordTTL,omitempty"`
	Labels           map[string]string `json:"labels,omitempty"`
	ProviderSpecific []Property        `json:"providerSpecific,omitempty"`
}

// Property is a provider-specific property of an endpoint.
type Property struct {
	Name  string `json:"name,omitempty"`
	Value string `json:"value,omitempty"`
}

// Changes are the changes of a plan.
type Changes struct{ Create, UpdateOld, UpdateNew, Delete []Endpoint }

func (c Changes) empty() bool {
	return len(c.Create)+len(c.UpdateOld)+len(c.UpdateNew)+len(c.Delete) == 0
}

// Client is the webhook client of a version of external-dns, and its planner.
type Client interface {
	Match(domain string) bool // reports whether the domain filter of the server accepts a domain
	Records(context.Context) ([]Endpoint, error)
	Adjust([]Endpoint) ([]Endpoint, error)
	Apply(context.Context, Changes) error
	Plan(current, desired []Endpoint) Changes
}

// Convert converts between the types of this package and those of external-dns by their JSON form.
func Convert[T any](from any) (to T) {
	b, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(b, &to)
	}
	if err != nil {
		panic(err) // a bug: both have the same JSON form
	}
	return to
}

// Many is the number of record sets of the largest test.
const Many = 60_000

// Run runs all tests. connect does what external-dns does when it starts with a webhook.
func Run(t *testing.T, connect func(url string) (Client, error)) {
	s := server.Start(t, server.Options{Dir: server.Dir(t), Config: server.Listen +
		"externaldns: {listen: '127.0.0.1:0', token_file: external-dns.token}\n" +
		fmt.Sprintf("designate: {quotas: {zone_recordsets: %d, zone_records: %d}}\n", 2*Many, 2*Many)})
	if _, err := connect(s.ExternalDNS); err == nil {
		t.Fatal("external-dns could connect without a token")
	}
	s.Run("project", "create", "team")
	var made struct{ Token string }
	created := s.Run("token", "create", "external-dns", "--project", "team", "-o", "json")
	if err := json.Unmarshal([]byte(created), &made); err != nil || made.Token == "" {
		t.Fatalf("token create: %v in %s", err, created)
	}
	token, file := made.Token, filepath.Join(s.Dir, "external-dns.token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"example.org.", "example.net."} {
		s.Must("POST", "/v2/zones", map[string]any{"name": name, "email": "admin@example.org"}, nil, "X-Auth-Token: "+token)
	}
	s.CreateZone("example.com.") // of another project
	c, err := connect(s.ExternalDNS)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(strings.Replace(s.ExternalDNS, "://", "://external-dns:"+token+"@", 1)); err != nil {
		t.Errorf("connect with the token in the URL: %v", err)
	}
	if _, err := connect(strings.Replace(s.ExternalDNS, "://", "://external-dns:wrong@", 1)); err == nil {
		t.Error("external-dns could connect with a wrong token in the URL")
	}
	r := runner{c, s}
	t.Run("filter", r.filter)
	t.Run("loop", r.loop)
	t.Run("bad records", r.badRecords)
	t.Run("conflict", r.conflict)
	t.Run("alias", r.alias)
	t.Run("many", r.many)
}

// runner runs the tests with one client. They share a server, so each test removes its records.
type runner struct {
	client Client
	server *server.Server
}

// filter checks that external-dns manages only zones of the project of its token.
func (r runner) filter(t *testing.T) {
	for domain, want := range map[string]bool{"example.org": true, "www.example.net": true, "www.example.com": false} {
		if got := r.client.Match(domain); got != want {
			t.Errorf("the domain filter accepts %s: %v, want %v", domain, got, want)
		}
	}
}

// reconcile is one loop of external-dns. It returns the changes that the loop made.
func (r runner) reconcile(t *testing.T, desired []Endpoint) Changes {
	t.Helper()
	current, err := r.client.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	adjusted, err := r.client.Adjust(desired)
	if err != nil {
		t.Fatal(err)
	}
	changes := r.client.Plan(current, adjusted)
	began := time.Now()
	if err := r.client.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	if n := len(changes.Create) + len(changes.Delete); n >= Many { // a hint, not a measurement: other tests run too
		t.Logf("the webhook applied %d changes in %v", n, time.Since(began))
	}
	return changes
}

// settle is reconcile, and checks that the next loop has nothing to do.
func (r runner) settle(t *testing.T, desired []Endpoint) {
	t.Helper()
	r.reconcile(t, desired)
	if again := r.reconcile(t, desired); !again.empty() {
		t.Errorf("the second loop has changes: %+v", again)
	}
}

// mustAnswer compares the answer of the server with the data of records, separated by spaces.
func (r runner) mustAnswer(t *testing.T, name string, typ uint16, want string) {
	t.Helper()
	var got []string
	for _, rr := range r.server.Ask(name, typ).Answer {
		got = append(got, strings.TrimPrefix(rr.String(), rr.Header().String()))
	}
	if s := strings.Join(got, " "); s != want {
		t.Errorf("%s %s = %q, want %q", name, dns.TypeToString[typ], s, want)
	}
}

// loop creates, updates and deletes records of the types that external-dns manages.
func (r runner) loop(t *testing.T) {
	list := []Endpoint{
		{DNSName: "www.example.org", RecordType: "A", Targets: []string{"192.0.2.2"}, RecordTTL: 300},
		{DNSName: "WWW.example.org.", RecordType: "AAAA", Targets: []string{"2001:0db8::0001"}},
		{DNSName: "*.app.example.net", RecordType: "CNAME", Targets: []string{"LB.example.com"}},
	}
	r.settle(t, list)
	r.mustAnswer(t, "www.example.org.", dns.TypeA, "192.0.2.2")
	r.mustAnswer(t, "www.example.org.", dns.TypeAAAA, "2001:db8::1")
	r.mustAnswer(t, "a.app.example.net.", dns.TypeCNAME, "LB.example.com.")
	list[0].Targets, list[0].RecordTTL = []string{"192.0.2.3"}, 60
	list[2] = Endpoint{DNSName: "*.app.example.net", RecordType: "A", Targets: []string{"192.0.2.4"}}
	r.settle(t, list)
	r.mustAnswer(t, "www.example.org.", dns.TypeA, "192.0.2.3")
	r.mustAnswer(t, "a.app.example.net.", dns.TypeA, "192.0.2.4")
	r.settle(t, nil)
	if got, err := r.client.Records(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("after the deletion: %v %v", got, err)
	}
}

// badRecords has endpoints that can never work beside a good one, which is served.
func (r runner) badRecords(t *testing.T) {
	good := Endpoint{DNSName: "good.example.org", RecordType: "A", Targets: []string{"192.0.2.1"}}
	bad := []Endpoint{
		{DNSName: "weight.example.org", RecordType: "A", Targets: []string{"192.0.2.1"}, SetIdentifier: "blue"},
		{DNSName: "type.example.org", RecordType: "NOTYPE", Targets: []string{"192.0.2.1"}},
		{DNSName: "zone.example.edu", RecordType: "A", Targets: []string{"192.0.2.1"}},
		{DNSName: "other.example.com", RecordType: "A", Targets: []string{"192.0.2.1"}},
		{DNSName: "data.example.org", RecordType: "A", Targets: []string{"999.0.2.1"}},
		{DNSName: "example.org", RecordType: "CNAME", Targets: []string{"lb.example.net"}},
	}
	r.settle(t, append(bad, good))
	r.mustAnswer(t, "good.example.org.", dns.TypeA, "192.0.2.1")
	if n := r.server.Metric("nameplane_externaldns_dropped_endpoints_total"); n < float64(len(bad)) {
		t.Errorf("%v endpoints are counted as dropped, want at least %d", n, len(bad))
	}
	// A client that does not adjust sends them as changes: they do not stop the rest either.
	second := Endpoint{DNSName: "second.example.org", RecordType: "A", Targets: []string{"192.0.2.5"}}
	if err := r.client.Apply(t.Context(), Changes{Create: append(bad, second)}); err != nil {
		t.Error(err)
	}
	r.mustAnswer(t, "second.example.org.", dns.TypeA, "192.0.2.5")
	r.settle(t, nil)
}

// conflict sends a plan that is too old. The other zone is changed, and the server still serves the client.
func (r runner) conflict(t *testing.T) {
	www := Endpoint{DNSName: "www.example.org", RecordType: "A", Targets: []string{"192.0.2.1"}}
	r.settle(t, []Endpoint{www})
	old, next := www, www
	old.Targets, next.Targets = []string{"192.0.2.7"}, []string{"192.0.2.8"}
	other := Endpoint{DNSName: "www.example.net", RecordType: "A", Targets: []string{"192.0.2.9"}}
	err := r.client.Apply(t.Context(), Changes{UpdateOld: []Endpoint{old}, UpdateNew: []Endpoint{next},
		Create: []Endpoint{other}})
	if err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("a plan that is too old: %v, want an error with status 500", err)
	}
	r.mustAnswer(t, "www.example.org.", dns.TypeA, "192.0.2.1")
	r.mustAnswer(t, "www.example.net.", dns.TypeA, "192.0.2.9")
	r.settle(t, nil)
}

// alias checks a CNAME at the apex, which external-dns marks as an alias. It becomes an ALIAS record set.
func (r runner) alias(t *testing.T) {
	r.settle(t, []Endpoint{
		{DNSName: "lb.example.org", RecordType: "A", Targets: []string{"192.0.2.33"}},
		{DNSName: "example.org", RecordType: "CNAME", Targets: []string{"lb.example.org"},
			ProviderSpecific: []Property{{Name: "alias", Value: "true"}}}})
	r.mustAnswer(t, "example.org.", dns.TypeA, "192.0.2.33")
	r.settle(t, nil)
}

// many creates, reads, and deletes Many records in one loop each.
func (r runner) many(t *testing.T) {
	list := make([]Endpoint, Many)
	for i := range list {
		list[i] = Endpoint{DNSName: fmt.Sprintf("host-%05d.example.org", i), RecordType: "A", RecordTTL: 300,
			Targets: []string{fmt.Sprintf("192.0.2.%d", i%256)}, Labels: map[string]string{"owner": "default",
				"resource": fmt.Sprintf("ingress/default/web-%d", i)}}
	}
	changes := r.reconcile(t, list)
	if len(changes.Create) != Many {
		t.Fatalf("%d creates, want %d", len(changes.Create), Many)
	}
	r.mustAnswer(t, "host-00000.example.org.", dns.TypeA, "192.0.2.0")
	r.mustAnswer(t, fmt.Sprintf("host-%05d.example.org.", Many-1), dns.TypeA, fmt.Sprintf("192.0.2.%d", (Many-1)%256))
	got, err := r.client.Records(t.Context())
	if err != nil || len(got) != Many {
		t.Fatalf("%d records, %v; want %d", len(got), err, Many)
	}
	want := list[Many/2]
	want.Labels = nil
	if !reflect.DeepEqual(got[Many/2], want) {
		t.Errorf("record %+v, want %+v", got[Many/2], want)
	}
	if again := r.reconcile(t, list); !again.empty() {
		t.Errorf("the second loop has changes: %.500v", again)
	}
	if changes := r.reconcile(t, nil); len(changes.Delete) != Many {
		t.Errorf("%d deletions, want %d", len(changes.Delete), Many)
	}
}
