package alias

import (
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// poolID is the ID of Designate's default pool, which contains every zone.
const poolID = "794ccc2c-d751-44fe-b57f-8894c9f5c842"

// TestSecondaries has an ALIAS at the apex that is followed through Unbound and served by servers that do not know the
// type. Each change of the target, with both families, is one serial increment and at most one NOTIFY to each server,
// and reaches all of them.
func TestSecondaries(t *testing.T) {
	t.Parallel()
	for _, key := range []peers.Key{{}, {Name: "transfer.example.",
		Secret: "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="}} {
		t.Run("key "+key.Name, func(t *testing.T) { followThroughSecondaries(t, key) })
	}
}

func followThroughSecondaries(t *testing.T, key peers.Key) {
	t.Parallel()
	a := newAuthority(t)
	target := func(i int) {
		a.set(fmt.Sprintf("cdn.example.net. 2 IN A 203.0.113.%d", i),
			fmt.Sprintf("cdn.example.net. 2 IN AAAA 2001:db8::%d", i))
	}
	target(1)
	s := startServer(t, unbound(t, a))
	s.transferTo(nil, key)
	if key.Name != "" {
		s.must("POST", "/v2/tsigkeys",
			fmt.Sprintf(`{"name":%q,"algorithm":"hmac-sha256","secret":%q,"scope":"POOL","resource_id":%q}`,
				key.Name, key.Secret, poolID))
	}
	zone := s.CreateZone("example.org.")
	set := s.alias(zone, "example.org.", "cdn.example.net.")
	server.Eventually(t, "an active ALIAS", func() bool { return s.must("GET", set, "")["status"] == "ACTIVE" })
	var fleet []*peers.Server
	for _, p := range peers.Secondaries() {
		fleet = append(fleet, peers.Start(t, p, []peers.Zone{{Name: "example.org."}},
			peers.Options{Primary: s.DNS[0], Key: key, Ready: server.Patience}))
	}
	s.transferTo(fleet, key)
	served(t, fleet, 1)
	steps := 0
	for i := 2; i <= 3; i++ {
		server.Eventually(t, "a zone that all have", func() bool { return s.must("GET", zone, "")["status"] == "ACTIVE" })
		before, notified := serialOf(s.DNS[0]), s.Metric("nameplane_notify_sent_total")
		target(i)
		served(t, fleet, i)
		// A new serial is the time of the commit, so the history is needed to count the changes.
		n := changesSince(s, zone, before)
		steps += n
		if sent := s.Metric("nameplane_notify_sent_total") - notified; sent == 0 || sent > float64(n*len(fleet)) {
			t.Errorf("%v NOTIFY of %d changes to %d secondaries", sent, n, len(fleet))
		}
	}
	// Two families that Unbound fetched in two seconds of its clock expire in two different seconds, and change in two
	// steps.
	if steps < 2 || steps > 3 {
		t.Errorf("two moves were %d changes", steps)
	}
	server.Eventually(t, "a zone that all have", func() bool { return s.must("GET", zone, "")["status"] == "ACTIVE" })
}

// served waits until all secondaries have the i-th addresses, and checks that they do not have the ALIAS.
func served(t *testing.T, fleet []*peers.Server, i int) {
	t.Helper()
	for _, f := range fleet {
		server.Eventually(t, fmt.Sprintf("address %d at %s", i, f.Name), func() bool {
			return answerOf(f.Addr, dns.TypeA) == fmt.Sprintf("example.org. 2 203.0.113.%d", i) &&
				answerOf(f.Addr, dns.TypeAAAA) == fmt.Sprintf("example.org. 2 2001:db8::%d", i)
		})
		if got := answerOf(f.Addr, 65401); got != "" {
			t.Errorf("%s has an ALIAS on the wire: %s", f.Name, got)
		}
	}
}

// transferTo configures the secondaries of the server.
func (s *node) transferTo(fleet []*peers.Server, key peers.Key) {
	s.t.Helper()
	var text strings.Builder
	allow := "127.0.0.1"
	if key.Name != "" {
		allow = ""
	}
	fmt.Fprintf(&text, "transfer:\n  allow: [%s]\n", allow)
	if len(fleet) > 0 {
		text.WriteString("  secondaries:\n")
	}
	for _, f := range fleet {
		fmt.Fprintf(&text, "    - {address: '%s', key: '%s'}\n", f.Addr, key.Name)
	}
	s.Reload(s.config + text.String())
}

func serialOf(addr string) uint32 {
	r, err := server.Ask(addr, "example.org.", dns.TypeSOA)
	if err != nil || len(r.Answer) == 0 {
		return 0
	}
	soa, _ := r.Answer[0].(*dns.SOA)
	return soa.Serial
}

// answerOf returns a server's answer for the apex; empty: none.
func answerOf(addr string, t uint16) string {
	r, err := server.Ask(addr, "example.org.", t)
	if err != nil {
		return ""
	}
	return texts(r.Answer)
}

// changesSince counts the served changes of a zone after a serial.
func changesSince(s *node, zone string, serial uint32) (n int) {
	s.t.Helper()
	list, _ := s.must("GET", zone+"/history", "")["history"].([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && uint32(c["serial_to"].(float64)) > serial {
			n++
		}
	}
	return n
}
