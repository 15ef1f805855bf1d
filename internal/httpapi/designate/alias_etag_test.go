package designate_test

import (
	"testing"
	"time"
)

// TestAliasIfMatch checks that If-Match accepts a tag from before a change of the status: the owner changed nothing.
func TestAliasIfMatch(t *testing.T) {
	aliasTest(t, func(t *testing.T, s *aliasServer) {
		z := s.zone("example.org.")
		made := s.want(202, request{as: alice, call: "POST " + z + "/recordsets",
			body: `{"name":"example.org.","type":"ALIAS","records":["cdn.example.net."]}`})
		path, tag := z+"/recordsets/"+made.str("id"), made.Header().Get("ETag")
		s.wait(5 * time.Second)
		s.wantState(path, "ACTIVE", "NONE", "")
		// the representation has changed
		s.want(200, request{as: alice, call: "GET " + path, headers: []string{"If-None-Match: " + tag}})
		read := s.want(200, request{as: alice, call: "GET " + path}).Header().Get("ETag")
		s.want(304, request{as: alice, call: "GET " + path, headers: []string{"If-None-Match: " + read}})
		s.want(412, request{as: alice, call: "PUT " + path, body: `{"ttl":100}`,
			headers: []string{`If-Match: "0123456789ab-` + tag[14:]}})
		s.want(202, request{as: alice, call: "PUT " + path, body: `{"ttl":100}`, headers: []string{"If-Match: " + tag}})
		s.want(412, request{as: alice, call: "PUT " + path, body: `{"ttl":200}`, headers: []string{"If-Match: " + tag}})
		s.want(412, request{as: alice, call: "DELETE " + path, headers: []string{"If-Match: " + read}})
	})
}
