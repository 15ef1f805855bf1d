package peers_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/peers"
)

const zoneText = `$ORIGIN example.org.
$TTL 300
@	SOA	ns hostmaster 1 3600 600 86400 60
	NS	ns
ns	A	192.0.2.53
`

func zoneFile(t *testing.T, text string) []peers.Zone {
	t.Helper()
	file := filepath.Join(t.TempDir(), "example.org.zone")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []peers.Zone{{Name: "example.org.", File: file}}
}

func TestStartAnswersAndStops(t *testing.T) {
	for _, p := range []peers.Program{peers.BIND(), peers.Knot(), peers.NSD(), peers.Unbound()} {
		t.Run(p.Name, func(t *testing.T) {
			s, err := p.Start(t.Context(), zoneFile(t, zoneText), peers.Options{Core: "0"})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			r, err := dns.Exchange(new(dns.Msg).SetQuestion("ns.example.org.", dns.TypeA), s.Addr)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Answer) != 1 || !r.Authoritative {
				t.Errorf("ns.example.org. A = %v, want one authoritative address", r)
			}
			if u, err := s.Usage(); err != nil || u.Memory < 1<<20 {
				t.Errorf("Usage() = %+v, %v, want at least 1 MB of memory", u, err)
			}
			s.Stop()
			if left := running(t, s.PID()); len(left) > 0 {
				t.Errorf("after Stop these of group %d still run: %v", s.PID(), left)
			}
			if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
				t.Errorf("Stop left %s", s.Dir)
			}
		})
	}
}

// running lists the processes of a group, without zombies: fields 3 and 5 of proc(5) stat.
func running(t *testing.T, group int) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, file := range files {
		text, _ := os.ReadFile(file) // a missing file means that the process ended
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 2 && fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			left = append(left, string(text))
		}
	}
	return left
}

func TestStartReportsTheLog(t *testing.T) {
	broken := zoneFile(t, strings.Replace(zoneText, "192.0.2.53", "192.0.2.x", 1))
	_, err := peers.BIND().Start(t.Context(), broken, peers.Options{Ready: 500_000_000})
	if err == nil || !strings.Contains(err.Error(), "192.0.2.x") {
		t.Errorf("Start with a broken zone file = %v, want named's log with the bad address", err)
	}
}

func TestStartNamesThePackage(t *testing.T) {
	t.Setenv("PATH", "")
	p := peers.Knot()
	p.Binary = "knotd-that-is-not-there"
	_, err := p.Start(t.Context(), nil, peers.Options{})
	if err == nil || !strings.Contains(err.Error(), "run make test") {
		t.Errorf("Start without the program = %v, want a sentence that says how to install it", err)
	}
}
