// Package secondaries tests zone transfers between a real server and BIND, Knot, NSD and PowerDNS.
//
// Start with TestSecondaries in secondaries_test.go for outgoing transfers, and with TestFromBIND in inbound_test.go
// for incoming ones.
package secondaries

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

const (
	apex   = "example.org."
	poolID = "794ccc2c-d751-44fe-b57f-8894c9f5c842"
)

var (
	key   = peers.Key{Name: "transfer.example.", Secret: "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="}
	noKey peers.Key
)

// node is a server with the helpers of this suite.
type node struct {
	*server.Server
	t       *testing.T
	section string            // the section transfer of its configuration
	zoneIDs map[string]string // zone IDs by name
}

// start starts a server with a section transfer, and waits until it serves.
func start(t *testing.T, transfer string) *node {
	t.Helper()
	s := server.Start(t, server.Options{Config: config("127.0.0.1:0", transfer)})
	return &node{s, t, transfer, map[string]string{}}
}

func config(dns, transfer string) string {
	return fmt.Sprintf("dns: {listen: ['%s']}\nhttp: {listen: '127.0.0.1:0'}\ntransfer:\n%s", dns, transfer)
}

// reload changes the section transfer of a running server.
func (s *node) reload(transfer string) {
	s.t.Helper()
	s.section = transfer
	s.Reload(config(s.DNS[0], transfer))
}

// restart kills the server and starts it again at the same DNS address, which the other servers know.
func (s *node) restart() {
	s.t.Helper()
	s.Configure(config(s.DNS[0], s.section))
	s.Restart()
}

// eventually waits until ok returns true.
func (s *node) eventually(what string, ok func() bool) {
	s.t.Helper()
	server.Eventually(s.t, what, ok)
}

// call sends a request for all projects, which must return this status, and returns the body of the reply.
func (s *node) call(method, path string, body any, want int) map[string]any {
	s.t.Helper()
	r, err := s.Call(method, path, body, "X-Auth-All-Projects: true")
	if err != nil || r.Status != want {
		s.t.Fatalf("%s %s: %d %v, want %d\n%s", method, path, r.Status, err, want, r.Body)
	}
	out := map[string]any{}
	_ = json.Unmarshal(r.Body, &out) // some replies have no body
	return out
}

func (s *node) createZone(name string) {
	s.t.Helper()
	z := s.call("POST", "/v2/zones", map[string]any{"name": name, "email": "admin@example.org", "ttl": 300}, 202)
	s.zoneIDs[name] = z["id"].(string)
}

func (s *node) createKey(k peers.Key, scope, resource string) {
	s.t.Helper()
	s.call("POST", "/v2/tsigkeys", map[string]any{"name": k.Name, "algorithm": "hmac-sha256", "secret": k.Secret,
		"scope": scope, "resource_id": resource}, 201)
}

// put sets the data of a record set.
func (s *node) put(zone, name, typ string, data ...string) {
	s.t.Helper()
	s.Run(append([]string{"record", "set", zone, name, typ}, data...)...)
}

func serial(addr, zone string) uint32 {
	r, err := server.Ask(addr, zone, dns.TypeSOA)
	if err != nil || len(r.Answer) != 1 {
		return 0
	}
	if soa, ok := r.Answer[0].(*dns.SOA); ok {
		return soa.Serial
	}
	return 0
}

// answers returns the data of a name at a server, sorted.
func answers(addr, name string, typ uint16) string {
	r, err := server.Ask(addr, name, typ)
	if err != nil {
		return "no answer"
	}
	var out []string
	for _, rec := range r.Answer {
		f := strings.SplitN(rec.String(), "\t", 5)
		out = append(out, f[len(f)-1])
	}
	if len(out) == 0 {
		return dns.RcodeToString[r.Rcode]
	}
	return strings.Join(sorted(out), " ")
}
