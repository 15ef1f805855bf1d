package secondaries

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

func sorted(s []string) []string { slices.Sort(s); return s }

// TestSecondaries has all four servers follow two zones through changes, without and with TSIG. Each change reaches all
// of them by IXFR, and the API reports when.
func TestSecondaries(t *testing.T) {
	t.Parallel()
	for _, k := range []peers.Key{noKey, key} {
		name := "without a key"
		if k.Name != "" {
			name = "with " + k.Name
		}
		t.Run(name, func(t *testing.T) { follow(t, k) })
	}
}

func follow(t *testing.T, k peers.Key) {
	t.Parallel()
	first := "  allow: [127.0.0.1]\n"
	if k.Name != "" {
		first = "  allow: []\n"
	}
	s := start(t, first)
	if k.Name != "" {
		s.createKey(k, "POOL", poolID)
	}
	zones := []peers.Zone{{Name: apex}, {Name: "second.test."}}
	for _, z := range zones {
		s.createZone(z.Name)
		s.put(z.Name, "ns", "A", "192.0.2.1", "192.0.2.2")
	}
	fleet := startAll(t, s, zones, k)
	config := "  secondaries:\n"
	for _, f := range fleet {
		config += fmt.Sprintf("    - {address: '%s', key: '%s'}\n", f.Addr, k.Name)
	}
	s.reload(config)
	inSync(s, fleet, apex)

	axfrs, ixfrs := s.Metric(`nameplane_transfers_total{kind="axfr",result="done"}`),
		s.Metric(`nameplane_transfers_total{kind="ixfr",result="done"}`)
	const changes = 3
	for i := range changes {
		addr := fmt.Sprintf("192.0.2.%d", 10+i)
		s.put(apex, "www", "A", addr)
		s.put(apex, "@", "TXT", fmt.Sprintf(`"change %d"`, i))
		inSync(s, fleet, apex)
		for _, f := range fleet {
			if got := answers(f.Addr, "www."+apex, dns.TypeA); got != addr {
				t.Errorf("%s answers %s, want %s", f.Name, got, addr)
			}
		}
	}
	s.eventually("an ACTIVE zone", func() bool { return s.zone(apex)["status"] == "ACTIVE" })
	sets := "/v2/zones/" + s.zoneIDs[apex] + "/recordsets"
	set := s.call("POST", sets, map[string]any{"name": "new." + apex, "type": "A", "records": []string{"192.0.2.99"}}, 202)
	s.eventually("an ACTIVE record set",
		func() bool { return s.call("GET", sets+"/"+set["id"].(string), nil, 200)["status"] == "ACTIVE" })
	for _, f := range fleet {
		if got := answers(f.Addr, "new."+apex, dns.TypeA); got != "192.0.2.99" {
			t.Errorf("%s answers %s for an ACTIVE record set", f.Name, got)
		}
	}
	t.Logf("%v times a secondary was in sync, after %.3f s on average", s.Metric("nameplane_secondary_sync_seconds_count"),
		s.Metric("nameplane_secondary_sync_seconds_sum")/s.Metric("nameplane_secondary_sync_seconds_count"))
	if n := s.Metric(`nameplane_transfers_total{kind="axfr",result="done"}`); n != axfrs {
		t.Errorf("%v whole transfers for small changes", n-axfrs)
	}
	if n := s.Metric(`nameplane_transfers_total{kind="ixfr",result="done"}`) - ixfrs; n < changes*float64(len(fleet)) {
		t.Errorf("%v differences for %d changes to %d servers", n, changes, len(fleet))
	}
}

// startAll starts every secondary. Each has the zones when startAll returns.
func startAll(t *testing.T, s *node, zones []peers.Zone, k peers.Key) (fleet []*peers.Server) {
	t.Helper()
	for _, p := range peers.Secondaries() {
		fleet = append(fleet, peers.Start(t, p, zones, peers.Options{Primary: s.DNS[0], Key: k, Ready: server.Patience}))
	}
	return fleet
}

// inSync waits until all servers have the newest serial of a zone.
func inSync(s *node, fleet []*peers.Server, zone string) {
	s.t.Helper()
	want := serial(s.DNS[0], zone)
	for _, f := range fleet {
		s.eventually(fmt.Sprintf("serial %d of %s at %s", want, zone, f.Name),
			func() bool { return serial(f.Addr, zone) == want })
	}
}

// TestSecondariesHaveTheSame compares the whole zone, with every kind of record, at all servers.
func TestSecondariesHaveTheSame(t *testing.T) {
	t.Parallel()
	s := start(t, "  allow: [127.0.0.1]\n")
	s.createZone(apex)
	for _, set := range []string{"@ MX 10|mail.example.org.", "mail A 192.0.2.1", "mail AAAA 2001:db8::1",
		`txt TXT "with \"quotes\""`, "c CNAME mail.example.org.",
		"_dns._udp SRV 0|0|53|mail.example.org.", "* A 192.0.2.9", "sub NS ns.sub.example.org.", "ns.sub A 192.0.2.8",
		`@ CAA 0|issue|"ca.test"`,
		"h HTTPS 1|.|alpn=h2"} {
		f := strings.SplitN(set, " ", 3)
		s.put(apex, f[0], f[1], strings.ReplaceAll(f[2], "|", " "))
	}
	fleet := startAll(t, s, []peers.Zone{{Name: apex}}, noKey)
	for _, q := range []struct {
		name string
		typ  uint16
	}{{"@", dns.TypeSOA}, {"@", dns.TypeNS}, {"@", dns.TypeMX}, {"@", dns.TypeCAA}, {"mail", dns.TypeA},
		{"mail", dns.TypeAAAA}, {"txt", dns.TypeTXT}, {"c", dns.TypeCNAME},
		{"_dns._udp", dns.TypeSRV}, {"any.name", dns.TypeA}, {"h", dns.TypeHTTPS}, {"ns.sub", dns.TypeA}} {
		name := apex
		if q.name != "@" {
			name = q.name + "." + apex
		}
		want := answers(s.DNS[0], name, q.typ)
		for _, f := range fleet {
			if got := answers(f.Addr, name, q.typ); got != want {
				t.Errorf("%s %s: %s says %s, we say %s", name, dns.TypeToString[q.typ], f.Name, got, want)
			}
		}
	}
}

// TestDeletion deletes a record set while a secondary is down. The set is PENDING until the secondary has the deletion,
// also after a restart.
func TestDeletion(t *testing.T) {
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, fmt.Sprintf("  secondaries: [{address: '127.0.0.1:%d'}]\n", port))
	s.createZone(apex)
	sets := "/v2/zones/" + s.zoneIDs[apex] + "/recordsets"
	set := s.call("POST", sets, map[string]any{"name": "www." + apex, "type": "A", "records": []string{"192.0.2.1"}}, 202)
	one := sets + "/" + set["id"].(string)
	s.call("DELETE", one, nil, 202)
	pending := func(when string) {
		t.Helper()
		if got := s.call("GET", one, nil, 200); got["status"] != "PENDING" || got["action"] != "DELETE" {
			t.Errorf("%s: %v %v, want PENDING DELETE", when, got["status"], got["action"])
		}
	}
	pending("at once")
	s.restart()
	s.eventually("the secondary counts as down", func() bool {
		return s.call("GET", "/v2/zones/"+s.zoneIDs[apex], nil, 200)["status"] == "PENDING"
	})
	pending("after a restart")
	for _, p := range peers.Secondaries() {
		if p.Name == "BIND" {
			peers.Start(t, p, []peers.Zone{{Name: apex}}, peers.Options{Primary: s.DNS[0], Port: port})
		}
	}
	s.eventually("the deleted set is gone", func() bool {
		r, err := s.Call("GET", one, nil, "X-Auth-All-Projects: true")
		return err == nil && r.Status == 404
	})
}
