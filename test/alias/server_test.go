// Package alias tests ALIAS records with a real server, an Unbound and a scripted authority.
//
// Start with TestUnbound in unbound_test.go: it follows one target through all its states.
package alias

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// unbound starts a caching resolver that queries the authority, and returns its address.
func unbound(t *testing.T, a *authority) string {
	t.Helper()
	s := peers.Start(t, peers.Resolver(a.addr), nil, peers.Options{})
	server.Eventually(t, "an Unbound that answers", func() bool {
		r, err := server.Ask(s.Addr, "ready.example.net.", dns.TypeA)
		return err == nil && r.Rcode == dns.RcodeNameError
	})
	return s.Addr
}

// node is a server with the helpers of this suite.
type node struct {
	*server.Server
	t      *testing.T
	config string // configuration without the section transfer
}

func startServer(t *testing.T, resolver string) *node {
	t.Helper()
	config := fmt.Sprintf(server.Listen+"follow: {resolvers: ['%s'], interval: 10s, ttl_floor: 1s}\n", resolver)
	s := server.Start(t, server.Options{Config: config + "transfer: {allow: [127.0.0.0/8]}\n"})
	return &node{s, t, config}
}

// do sends a request; the error is that of the connection.
func (s *node) do(method, path, body string) (int, map[string]any, error) {
	r, err := s.Call(method, path, body)
	var out map[string]any
	if json.Unmarshal(r.Body, &out) != nil {
		out = map[string]any{"text": string(r.Body)}
	}
	return r.Status, out, err
}

// must sends a request that must succeed.
func (s *node) must(method, path, body string) (out map[string]any) {
	s.t.Helper()
	s.Must(method, path, body, &out)
	return out
}

func (s *node) alias(zone, name, target string) string {
	s.t.Helper()
	out := s.must("POST", zone+"/recordsets",
		fmt.Sprintf(`{"name":%q,"type":"ALIAS","ttl":300,"records":[%q]}`, name, target))
	return zone + "/recordsets/" + out["id"].(string)
}

// answer returns the answers to a question, sorted.
func (s *node) answer(name string, t uint16) string {
	s.t.Helper()
	return texts(s.Ask(name, t).Answer)
}

// texts formats records as name, TTL and address, sorted.
func texts(records []dns.RR) string {
	var out []string
	for _, rec := range records {
		h := rec.Header()
		switch r := rec.(type) {
		case *dns.A:
			out = append(out, fmt.Sprintf("%s %d %s", h.Name, h.Ttl, r.A))
		case *dns.AAAA:
			out = append(out, fmt.Sprintf("%s %d %s", h.Name, h.Ttl, r.AAAA))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// transfer returns the records of a zone transfer.
func (s *node) transfer(zone string) []dns.RR {
	s.t.Helper()
	tr := new(dns.Transfer)
	ch, err := tr.In(new(dns.Msg).SetAxfr(zone), s.DNS[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var out []dns.RR
	for e := range ch {
		if e.Error != nil {
			s.t.Fatal(e.Error)
		}
		out = append(out, e.RR...)
	}
	return out
}
