package secondaries

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// createSecondary creates a SECONDARY zone, with a key of its own if there is one.
func (s *node) createSecondary(name, master string, k peers.Key) {
	s.t.Helper()
	z := s.call("POST", "/v2/zones", map[string]any{"name": name, "type": "SECONDARY", "masters": []string{master}}, 202)
	if z["status"] != "PENDING" {
		s.t.Errorf("a new SECONDARY zone is %v", z["status"])
	}
	s.zoneIDs[name] = z["id"].(string)
	if k != noKey {
		s.createKey(k, "ZONE", s.zoneIDs[name])
		s.call("POST", "/v2/zones/"+s.zoneIDs[name]+"/tasks/xfr", nil, 202) // the first attempt was without the key
	}
}

func (s *node) zone(name string) map[string]any {
	s.t.Helper()
	return s.call("GET", "/v2/zones/"+s.zoneIDs[name], nil, 200)
}

func (s *node) hasSerial(name string, want func() uint32) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("serial of the master of %s", name), func() bool {
		w := want()
		return w != 0 && serial(s.DNS[0], name) == w
	})
}

// TestFromNameplane has one nameplane server follow another: AXFR, then IXFR after a NOTIFY, and restarts of both.
func TestFromNameplane(t *testing.T) {
	t.Parallel()
	for _, k := range []peers.Key{noKey, key} {
		t.Run(fmt.Sprintf("key %q", k.Name), func(t *testing.T) { followNameplane(t, k) })
	}
}

func followNameplane(t *testing.T, k peers.Key) {
	t.Parallel()
	allow := "  allow: [127.0.0.1]\n"
	if k != noKey {
		allow = "  allow: []\n"
	}
	primary, second := start(t, allow), start(t, "  allow: []\n")
	primary.createZone(apex)
	if k != noKey {
		primary.createKey(k, "ZONE", primary.zoneIDs[apex])
	}
	primary.put(apex, "www", "A", "192.0.2.1")
	primary.put(apex, "gone", "A", "192.0.2.1")
	second.createSecondary(apex, primary.DNS[0], k)
	newest := func() uint32 { return serial(primary.DNS[0], apex) }
	second.hasSerial(apex, newest)
	second.eventually("an ACTIVE zone", func() bool { return second.zone(apex)["status"] == "ACTIVE" })
	if at := second.zone(apex)["transferred_at"]; at == nil {
		t.Error("transferred_at is null")
	}

	// After a NOTIFY the secondary transfers the difference at once; the refresh time of the SOA is an hour.
	primary.reload(fmt.Sprintf("  secondaries: [{address: '%s', key: '%s'}]\n", second.DNS[0], k.Name))
	primary.put(apex, "www", "A", "192.0.2.2", "192.0.2.3")
	primary.put(apex, "new", "TXT", `"text"`)
	second.hasSerial(apex, newest)
	if got := answers(second.DNS[0], "www."+apex, dns.TypeA); got != "192.0.2.2 192.0.2.3" {
		t.Errorf("www is %s", got)
	}
	if n := second.Metric(`nameplane_secondary_transfers_total{kind="ixfr"}`); n == 0 {
		t.Error("no difference was transferred")
	}
	primary.eventually("a zone that is ACTIVE at the primary",
		func() bool { return primary.zone(apex)["status"] == "ACTIVE" })

	// A SECONDARY zone cannot be changed here.
	second.call("POST", "/v2/zones/"+second.zoneIDs[apex]+"/recordsets", map[string]any{"name": "x." + apex, "type": "A",
		"records": []string{"192.0.2.9"}}, 403)
	second.call("POST", "/v2/zones/"+second.zoneIDs[apex]+"/tasks/xfr", nil, 202)
	primary.call("POST", "/v2/zones/"+primary.zoneIDs[apex]+"/tasks/xfr", nil, 400)

	// After a restart the secondary serves the copy at once, even without its master, and follows the master again later.
	second.restart()
	if got := answers(second.DNS[0], "new."+apex, dns.TypeTXT); got != `"text"` {
		t.Errorf("after a restart new is %s", got)
	}
	// The master's journal survives a restart too.
	primary.restart()
	primary.put(apex, "after", "A", "192.0.2.4")
	second.hasSerial(apex, newest)
	if n := second.Metric(`nameplane_secondary_transfers_total{kind="axfr"}`); n != 0 {
		t.Errorf("%v whole transfers after the restarts", n)
	}
}

// bindPrimary starts a named with a zone that nsupdate can change, and that notifies second of changes.
func bindPrimary(t *testing.T, second string, k peers.Key) *peers.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "zone")
	text := "$TTL 60\n@ SOA ns host 1 3600 5 8 60\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.1\n"
	for i := range 200 { // named sends a difference only if it is smaller than the zone
		text += fmt.Sprintf("n%d A 192.0.2.%d\n", i, i)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return peers.Start(t, peers.BIND(), []peers.Zone{{Name: apex, File: file}}, peers.Options{Update: true, Notify: second,
		Key: k})
}

// TestFromBIND follows a named: AXFR, IXFR, NOTIFY, and expiry when it is down.
func TestFromBIND(t *testing.T) {
	t.Parallel()
	for _, k := range []peers.Key{noKey, key} {
		t.Run(fmt.Sprintf("key %q", k.Name), func(t *testing.T) { followBIND(t, k) })
	}
}

func followBIND(t *testing.T, k peers.Key) {
	t.Parallel()
	second := start(t, "  allow: []\n")
	named := bindPrimary(t, second.DNS[0], k)
	second.createSecondary(apex, named.Addr, k)
	newest := func() uint32 { return serial(named.Addr, apex) }
	second.hasSerial(apex, newest)
	before := second.Metric(`nameplane_secondary_transfers_total{kind="ixfr"}`)
	for i := range 3 {
		host, port, _ := strings.Cut(named.Addr, ":")
		cmd := exec.Command("nsupdate", "-t", "10")
		cmd.Stdin = strings.NewReader(fmt.Sprintf("server %s %s\nzone %s\nupdate delete www.%s\n"+
			"update add www.%s 60 A 192.0.2.%d\nsend\n", host, port, apex, apex, apex, 10+i))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("nsupdate: %v\n%s", err, out)
		}
		second.hasSerial(apex, newest)
		if got, want := answers(second.DNS[0], "www."+apex, dns.TypeA), fmt.Sprintf("192.0.2.%d", 10+i); got != want {
			t.Errorf("www is %s, want %s", got, want)
		}
	}
	if n := second.Metric(`nameplane_secondary_transfers_total{kind="ixfr"}`) - before; n < 3 {
		t.Errorf("%v differences for 3 changes", n)
	}
	if k == noKey {
		expire(t, second, named)
	}
}

// expire checks that the zone is not served 8 seconds after the last contact with the master, as its SOA says, but is
// kept.
func expire(t *testing.T, second *node, named *peers.Server) {
	t.Helper()
	named.Process.Stop()
	second.call("POST", "/v2/zones/"+second.zoneIDs[apex]+"/tasks/xfr", nil, 202)
	second.eventually("SERVFAIL of an expired zone", func() bool {
		return answers(second.DNS[0], "www."+apex,
			dns.TypeA) == "SERVFAIL"
	})
	if z := second.zone(apex); z["status"] != "ERROR" {
		t.Errorf("an expired zone is %v", z["status"])
	}
	second.restart()
	if got := answers(second.DNS[0], "www."+apex, dns.TypeA); got != "SERVFAIL" {
		t.Errorf("after a restart the expired zone answers %s", got)
	}
	if err := named.Start(); err != nil {
		t.Fatal(err)
	}
	second.eventually("the zone back from its master", func() bool {
		return answers(second.DNS[0], "www."+apex, dns.TypeA) == "192.0.2.12"
	})
}
