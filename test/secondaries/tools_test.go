package secondaries

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

// signing formats a key for dig and nsupdate.
func signing(k peers.Key) string { return "hmac-sha256:" + k.Name + ":" + k.Secret }

// dig queries the server, and returns the output of dig.
func (s *node) dig(args ...string) string {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.DNS[0])
	if err != nil {
		s.t.Fatal(err)
	}
	out, _ := exec.Command("dig", append([]string{"@" + host, "-p", port, "+tries=1", "+time=5"},
		args...)...).CombinedOutput()
	return string(out)
}

// TestDig transfers with dig, with and without keys.
func TestDig(t *testing.T) {
	wrong := peers.Key{Name: key.Name, Secret: "d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3I="}
	unknown := peers.Key{Name: "nobody.example.", Secret: key.Secret}
	s := start(t, "  allow: []\n")
	s.createZone(apex)
	s.createKey(key, "ZONE", s.zoneIDs[apex])
	from := serial(s.DNS[0], apex)
	s.put(apex, "www", "A", "192.0.2.1")
	tests := []struct {
		name string
		key  peers.Key
		args []string
		want string // expected in the output of dig
		not  string
	}{
		{"AXFR without a key", noKey, []string{apex, "AXFR"}, "Transfer failed", "192.0.2.1"},
		{"AXFR with the key", key, []string{apex, "AXFR"}, "192.0.2.1", "failed"},
		{"AXFR with a wrong secret", wrong, []string{apex, "AXFR"}, "Transfer failed", "192.0.2.1"},
		{"AXFR with an unknown key", unknown, []string{apex, "AXFR"}, "Transfer failed", "192.0.2.1"},
		{"IXFR with the key", key, []string{apex, fmt.Sprintf("IXFR=%d", from)}, "XFR size: 5 records", "failed"},
		{"IXFR without a key", noKey, []string{apex, fmt.Sprintf("IXFR=%d", from)}, "Transfer failed", "192.0.2.1"},
		{"IXFR over UDP", key, []string{"+notcp", apex, fmt.Sprintf("IXFR=%d", from)}, "192.0.2.1", "failed"},
		{"a signed query", key, []string{"www." + apex}, "192.0.2.1", "Couldn't verify"},
		{"a signed query over TCP", key, []string{"+tcp", "www." + apex}, "192.0.2.1", "Couldn't verify"},
		{"a query with a wrong secret", wrong, []string{"www." + apex}, "BADSIG", "192.0.2.1"},
		{"a query with an unknown key", unknown, []string{"www." + apex}, "BADKEY", "192.0.2.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.key != noKey {
				args = append([]string{"-y", signing(tt.key)}, args...)
			}
			if out := s.dig(args...); !strings.Contains(out, tt.want) || strings.Contains(out, tt.not) {
				t.Errorf("dig %v prints\n%s", args, out)
			}
		})
	}
}

// nsupdate sends an update, and returns its output; empty: success.
func (s *node) nsupdate(k peers.Key, lines ...string) string {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.DNS[0])
	if err != nil {
		s.t.Fatal(err)
	}
	var args []string
	if k != noKey {
		args = []string{"-y", signing(k)}
	}
	cmd := exec.Command("nsupdate", append(args, "-t", "10")...)
	cmd.Stdin = strings.NewReader("server " + host + " " + port + "\n" + strings.Join(lines, "\n") + "\nsend\n")
	out, err := cmd.CombinedOutput()
	if (err != nil) != (len(out) > 0) {
		s.t.Errorf("nsupdate says %q and ends with %v", out, err)
	}
	return string(out)
}

// TestNsupdate changes a zone with nsupdate. A refused update changes nothing.
func TestNsupdate(t *testing.T) {
	wrong := peers.Key{Name: key.Name, Secret: "d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmcgd3I="}
	other := peers.Key{Name: "other.example.", Secret: key.Secret}
	s := start(t, "  allow: []\n")
	s.createZone(apex)
	s.createZone("other.test.")
	s.createKey(key, "ZONE", s.zoneIDs[apex])
	s.createKey(other, "ZONE", s.zoneIDs["other.test."])
	acme := s.limitedKey("acme.example.", "--zone", apex, "--name", "_acme-challenge.*", "--type", "TXT")
	s.put(apex, "www", "A", "192.0.2.1")
	tests := []struct {
		name  string
		key   peers.Key
		lines []string
		says  string
		www   string // answers after the update
	}{
		{"good", key, []string{"update add www.example.org. 60 A 192.0.2.2"}, "", "192.0.2.1 192.0.2.2"},
		{"with a zone", key, []string{"zone example.org.", "update delete www.example.org. A 192.0.2.1"}, "", "192.0.2.2"},
		{"no key", noKey, []string{"update delete www.example.org."}, "REFUSED", "192.0.2.2"},
		{"wrong secret", wrong, []string{"zone example.org.", "update delete www.example.org."}, "BADSIG", "192.0.2.2"},
		{"another zone's key", other, []string{"zone example.org.", "update delete www.example.org."}, "REFUSED",
			"192.0.2.2"},
		{"a set that is not there", key, []string{"prereq yxrrset www.example.org. AAAA", "update delete www.example.org."},
			"NXRRSET", "192.0.2.2"},
		{"a name that is there", key, []string{"prereq nxdomain www.example.org.", "update delete www.example.org."},
			"YXDOMAIN", "192.0.2.2"},
		{"a set that is there", key, []string{"prereq nxrrset www.example.org. A", "update delete www.example.org."},
			"YXRRSET", "192.0.2.2"},
		{"a name that is not there", key, []string{"prereq yxdomain no.example.org.", "update delete www.example.org."},
			"NXDOMAIN", "192.0.2.2"},
		{"outside", key, []string{"zone example.org.", "update add www.example.net. 60 A 192.0.2.3",
			"update delete www.example.org."}, "NOTZONE", "192.0.2.2"},
		{"a name server of the zone", key, []string{"update add example.org. 300 NS ns2.example.net."}, "", "192.0.2.2"},
		{"the same name server again", key, []string{"update add example.org. 300 NS ns2.example.net."}, "", "192.0.2.2"},
		{"the last name server stays", key, []string{"zone example.org.", "update delete example.org. NS"}, "", "192.0.2.2"},
		{"another name", acme, []string{"update delete www.example.org. TXT"}, "REFUSED", "192.0.2.2"},
		{"another type", acme, []string{"update add _acme-challenge.example.org. 60 CNAME a.test."}, "REFUSED", "192.0.2.2"},
		{"a challenge", acme, []string{"update add _acme-challenge.mail.example.org. 60 TXT proof"}, "", "192.0.2.2"},
		{"half of it is invalid", key, []string{"update delete www.example.org.",
			"update add example.org. 60 CNAME other.test."}, "", "NXDOMAIN"},
		{"many at once", key, many(), "", "192.0.2.4"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := s.nsupdate(tt.key, tt.lines...)
			if tt.says == "" && got != "" || !strings.Contains(got, tt.says) {
				t.Errorf("nsupdate says %q, want %q", got, tt.says)
			}
			if got := answers(s.DNS[0], "www."+apex, dns.TypeA); got != tt.www {
				t.Errorf("www is %s, want %s", got, tt.www)
			}
		})
	}
}

// limitedKey creates a key with the flags of the command.
func (s *node) limitedKey(name string, flags ...string) peers.Key {
	s.t.Helper()
	var k struct{ Secret string }
	out := s.Run(append([]string{"tsig", "create", name, "-o", "json"}, flags...)...)
	if err := json.Unmarshal([]byte(out), &k); err != nil {
		s.t.Fatalf("%v in %s", err, out)
	}
	return peers.Key{Name: name, Secret: k.Secret}
}

// TestRotate gives a key a new secret: the old one is refused, and the new one can update the zone.
func TestRotate(t *testing.T) {
	s := start(t, "  allow: []\n")
	s.createZone(apex)
	old := s.limitedKey("update.example.", "--zone", apex)
	update := func(k peers.Key, address string) string {
		t.Helper()
		return s.nsupdate(k, "zone "+apex, "update delete www.example.org. A", "update add www.example.org. 60 A "+address)
	}
	if out := update(old, "192.0.2.1"); out != "" {
		t.Errorf("the first secret: %s", out)
	}
	var rotated struct{ Secret string }
	out := s.Run("tsig", "rotate", old.Name, "-o", "json")
	if err := json.Unmarshal([]byte(out), &rotated); err != nil || rotated.Secret == old.Secret {
		t.Fatalf("%v in %s", err, out)
	}
	if out := update(old, "192.0.2.2"); !strings.Contains(out, "BADSIG") {
		t.Errorf("nsupdate with the old secret says %q, want BADSIG", out)
	}
	if got := answers(s.DNS[0], "www."+apex, dns.TypeA); got != "192.0.2.1" {
		t.Errorf("the old secret changed the answer to %s", got)
	}
	if out := update(peers.Key{Name: old.Name, Secret: rotated.Secret}, "192.0.2.3"); out != "" {
		t.Errorf("the new secret: %s", out)
	}
	if got := answers(s.DNS[0], "www."+apex, dns.TypeA); got != "192.0.2.3" {
		t.Errorf("the answer after an update with the new secret is %s", got)
	}
}

// TestKnsupdate sends an update of 24 kB in one datagram, changes the name servers of the zone, and replaces its SOA.
func TestKnsupdate(t *testing.T) {
	s := start(t, "  allow: []\n")
	s.createZone(apex)
	s.createKey(key, "ZONE", s.zoneIDs[apex])
	host, port, err := net.SplitHostPort(s.DNS[0])
	if err != nil {
		t.Fatal(err)
	}
	next := serial(s.DNS[0], apex) + 1000
	first := answers(s.DNS[0], apex, dns.TypeNS)
	for _, tt := range []struct {
		name  string
		lines []string
		query string
		typ   uint16
		want  string
	}{
		{"large", many(), "www." + apex, dns.TypeA, "192.0.2.4"},
		{"two name servers", []string{"update add example.org. 300 NS ns1.example.net.",
			"update add example.org. 300 NS ns2.example.net.", "update delete example.org. 0 NS " + first},
			apex, dns.TypeNS, "ns1.example.net. ns2.example.net."},
		{"the last stays", []string{"update delete example.org. 0 NS ns1.example.net.",
			"update delete example.org. 0 NS ns2.example.net."}, apex, dns.TypeNS, "ns2.example.net."},
		{"SOA", []string{fmt.Sprintf("update add example.org. 300 SOA ns2.example.net. ops.example.org. %d 1 2 3 4", next)},
			apex, dns.TypeSOA, fmt.Sprintf("ns2.example.net. ops.example.org. %d 1 2 3 4", next)},
	} {
		cmd := exec.Command("knsupdate", "-t", "10", "-y", signing(key))
		cmd.Stdin = strings.NewReader("server " + host + " " + port + "\nzone example.org.\n" +
			strings.Join(tt.lines, "\n") + "\nsend\nquit\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: knsupdate: %v\n%s", tt.name, err, out)
		}
		if got := answers(s.DNS[0], tt.query, tt.typ); got != tt.want {
			t.Errorf("%s: %s is %s, want %s", tt.name, tt.query, got, tt.want)
		}
	}
}

// many returns an update that is larger than an ordinary datagram.
func many() []string {
	lines := []string{"update add www.example.org. 60 A 192.0.2.4"}
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("update add h%d.example.org. 60 TXT \"%s\"", i, strings.Repeat("x", 100)))
	}
	return lines
}
