package secondaries

import (
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

// many returns an update that is too large for UDP.
func many() []string {
	lines := []string{"update add www.example.org. 60 A 192.0.2.4"}
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("update add h%d.example.org. 60 TXT \"%s\"", i, strings.Repeat("x", 100)))
	}
	return lines
}
