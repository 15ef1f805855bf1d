// Package mec tests a running server as edge applications, platforms and an EdgeGallery mepserver use it, and checks
// the results over DNS.
//
// Start with TestAnswers in answers_test.go.
package mec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// settings is the configuration of all tests: every listener, and no token for platforms on this machine, because a
// mepserver sends none.
const settings = server.Listen + `apps: {listen: '127.0.0.1:0'}
mep: {listen: '127.0.0.1:0', authentication: none}
`

// node is a server with the helpers of this suite.
type node struct {
	*server.Server
	t *testing.T
}

// start starts a server in a directory, a new one if dir is empty, and waits until it serves.
func start(t *testing.T, dir, config string, args ...string) *node {
	t.Helper()
	return &node{server.Start(t, server.Options{Dir: dir, Config: config, Args: args}), t}
}

// call sends a request "METHOD URL" without the administrator's token.
func (s *node) call(call, body string, headers ...string) (server.Response, error) {
	method, url, _ := strings.Cut(call, " ")
	return s.Call(method, url, body, headers...)
}

// want sends a request whose reply must have this status.
func (s *node) want(status int, call, body string, headers ...string) server.Response {
	s.t.Helper()
	r, err := s.call(call, body, headers...)
	if err != nil {
		s.t.Fatalf("%s: %v", call, err)
	}
	if r.Status != status {
		s.t.Fatalf("%s %s = %d %s, want %d", call, body, r.Status, r.Body, status)
	}
	if r.Status >= 400 {
		var p struct{ Status int }
		if err := json.Unmarshal(r.Body, &p); err != nil || p.Status != r.Status ||
			r.Header.Get("Content-Type") != "application/problem+json" {
			s.t.Errorf("%s: %d is no problem document: %s %s", call, r.Status, r.Header.Get("Content-Type"), r.Body)
		}
	}
	return r
}

// appToken creates a token of an application instance and returns it as a header.
func (s *node) appToken(app string) string {
	s.t.Helper()
	b, err := json.Marshal(map[string]string{"name": "app-" + app, "project": "admin", "role": "app", "app": app})
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.want(201, "POST "+s.HTTP+"/access/v1/tokens", string(b), "X-Auth-Token: "+s.Token)
	var made struct{ Token struct{ Token string } }
	if err := json.Unmarshal(r.Body, &made); err != nil || made.Token.Token == "" {
		s.t.Fatalf("token %s: %v", r.Body, err)
	}
	return "Authorization: Bearer " + made.Token.Token
}

// answer returns the answer to a question as short text: addresses with the TTL, NODATA, or the error.
func (s *node) answer(name string, typ uint16) string {
	s.t.Helper()
	r := s.Ask(name, typ)
	if r.Rcode != dns.RcodeSuccess {
		return dns.RcodeToString[r.Rcode]
	}
	if len(r.Answer) == 0 {
		return "NODATA"
	}
	var out []string
	for _, rr := range r.Answer {
		switch rr := rr.(type) {
		case *dns.A:
			out = append(out, fmt.Sprint(rr.A, "/", rr.Hdr.Ttl))
		case *dns.AAAA:
			out = append(out, fmt.Sprint(rr.AAAA, "/", rr.Hdr.Ttl))
		default:
			out = append(out, rr.String())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// says fails the test unless want is the answer to "NAME TYPE".
func (s *node) says(question, want string) {
	s.t.Helper()
	name, typ, _ := strings.Cut(question, " ")
	if got := s.answer(name, dns.StringToType[typ]); got != want {
		s.t.Errorf("%s = %s, want %s", question, got, want)
	}
}

// rule returns the JSON of a rule.
func rule(id, name, addr, more string) string {
	family := "IP_V4"
	if strings.Contains(addr, ":") {
		family = "IP_V6"
	}
	return fmt.Sprintf(`{"dnsRuleId":%q,"domainName":%q,"ipAddressType":%q,"ipAddress":%q%s}`, id, name, family, addr,
		more)
}
