package alias

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// poolID is that of Designate's default pool, which every zone is in.
const poolID = "794ccc2c-d751-44fe-b57f-8894c9f5c842"

// TestSecondaries has an ALIAS at the apex followed through Unbound, and served by servers that know nothing of the type: each
// change of the target is one serial step, and reaches all of them.
func TestSecondaries(t *testing.T) {
	for _, key := range []peers.Key{{}, {Name: "transfer.example.", Secret: "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzISEhIQ=="}} {
		t.Run("key "+key.Name, func(t *testing.T) { spread(t, key) })
	}
}

func spread(t *testing.T, key peers.Key) {
	a := newAuthority(t)
	target := func(addr string) { a.set("cdn.example.net. 2 IN A "+addr, "cdn.example.net. 2 IN AAAA 2001:db8::1") }
	target("203.0.113.1")
	s := startServer(t, unbound(t, a))
	s.transferTo(nil, key)
	if key.Name != "" {
		s.must("POST", "/v2/tsigkeys", fmt.Sprintf(`{"name":%q,"algorithm":"hmac-sha256","secret":%q,"scope":"POOL","resource_id":%q}`,
			key.Name, key.Secret, poolID))
	}
	zone := s.zone("example.org.")
	set := s.alias(zone, "example.org.", "cdn.example.net.")
	eventually(t, "an active ALIAS", func() bool { return s.must("GET", set, "")["status"] == "ACTIVE" })
	var fleet []*peers.Server
	for _, p := range peers.Secondaries() {
		f, err := p.Start(t.Context(), []peers.Zone{{Name: "example.org."}}, peers.Options{Primary: s.DNS[0], Key: key, Ready: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Stop)
		fleet = append(fleet, f)
	}
	s.transferTo(fleet, key)
	for _, addr := range []string{"203.0.113.1", "203.0.113.2", "203.0.113.3"} {
		before := serialOf(s.DNS[0])
		target(addr)
		for _, f := range fleet {
			eventually(t, addr+" at "+f.Name, func() bool {
				return answerOf(f.Addr, dns.TypeA) == "example.org. 2 "+addr && answerOf(f.Addr, dns.TypeAAAA) == "example.org. 2 2001:db8::1"
			})
			if got := answerOf(f.Addr, 65401); got != "" {
				t.Errorf("%s has an ALIAS on the wire: %s", f.Name, got)
			}
		}
		// Serials step to the time of the commit, so that one step is told by the history.
		if after := serialOf(s.DNS[0]); addr != "203.0.113.1" && changesSince(s, zone, before) != 1 {
			t.Errorf("from serial %d to %d in %d changes", before, after, changesSince(s, zone, before))
		}
	}
	eventually(t, "a zone that all have", func() bool { return s.must("GET", zone, "")["status"] == "ACTIVE" })
}

// transferTo tells the server who its secondaries are.
func (s *server) transferTo(fleet []*peers.Server, key peers.Key) {
	s.t.Helper()
	file := filepath.Join(s.dir, "nameplane.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	var text strings.Builder
	for line := range strings.Lines(string(old)) {
		if !strings.HasPrefix(line, "transfer:") && !strings.HasPrefix(line, " ") {
			text.WriteString(line)
		}
	}
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
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		s.t.Fatal(err)
	}
	before := strings.Count(s.log.String(), "reloaded configuration")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "a reloaded configuration", func() bool { return strings.Count(s.log.String(), "reloaded configuration") > before })
}

func serialOf(addr string) uint32 {
	r, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", dns.TypeSOA), addr)
	if err != nil || len(r.Answer) == 0 {
		return 0
	}
	soa, _ := r.Answer[0].(*dns.SOA)
	return soa.Serial
}

// answerOf is what a server answers for the apex; empty when it does not.
func answerOf(addr string, t uint16) string {
	r, err := dns.Exchange(new(dns.Msg).SetQuestion("example.org.", t), addr)
	if err != nil {
		return ""
	}
	return texts(r.Answer)
}

// changesSince counts the changes of a zone behind a serial that were served.
func changesSince(s *server, zone string, serial uint32) (n int) {
	s.t.Helper()
	list, _ := s.must("GET", zone+"/history", "")["history"].([]any)
	for _, c := range list {
		if c, ok := c.(map[string]any); ok && uint32(c["serial_to"].(float64)) > serial {
			n++
		}
	}
	return n
}
