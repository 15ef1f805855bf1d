package powerdns

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// startCA starts Pebble, which validates names with the given DNS server. It returns the URL of its directory.
func startCA(t *testing.T, dir, resolver string) string {
	t.Helper()
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
		"-days", "30", "-subj", "/CN=pebble", "-addext", "subjectAltName=IP:127.0.0.1",
		"-keyout", "pebble.key", "-out", "pebble.crt")
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	conf := fmt.Sprintf(`{"pebble": {"listenAddress": %q, "managementListenAddress": "127.0.0.1:0",
		"certificate": "pebble.crt", "privateKey": "pebble.key", "httpPort": 5002, "tlsPort": 5001}}`, addr)
	if err := os.WriteFile(filepath.Join(dir, "pebble.json"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	p := &server.Process{Name: "Pebble", WorkDir: dir, LogFile: filepath.Join(dir, "pebble.log"),
		Env:     []string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0"},
		Command: []string{"pebble", "-config", "pebble.json", "-dnsserver", resolver}}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Log(p.LogTail())
		}
	})
	server.Eventually(t, "Pebble listens", func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "https://" + addr + "/dir"
}

func run(t *testing.T, dir string, env []string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
}

const challenge = "_acme-challenge.example.org."

// TestLego issues a certificate with lego and its provider for PowerDNS.
func TestLego(t *testing.T) {
	need.OrFail(t, programs)
	s := server.Start(t, server.Options{})
	s.CreateZone("example.org.")
	dir := t.TempDir()
	directory := startCA(t, dir, s.DNS[0])
	run(t, dir, []string{"PDNS_API_URL=" + s.HTTP, "PDNS_API_KEY=" + s.Token, "LEGO_CA_CERTIFICATES=pebble.crt"},
		"lego", "--server", directory, "--accept-tos", "--email", "hostmaster@example.org", "--dns", "pdns",
		"--dns.resolvers", s.DNS[0], "--dns.disable-cp", "--domains", "example.org", "--domains", "*.example.org",
		"--path", "lego", "run")
	if _, err := os.Stat(filepath.Join(dir, "lego/certificates/example.org.crt")); err != nil {
		t.Fatal(err)
	}
	if r := s.Ask(challenge, dns.TypeTXT); len(r.Answer) != 0 {
		t.Errorf("lego left %v", r.Answer)
	}
}

// TestChallenges adds the records of fifty ACME challenges for one name at the same time: DNS has all of them, and none
// after the clients have removed them.
func TestChallenges(t *testing.T) {
	const clients = 50
	s := server.Start(t, server.Options{Config: server.Listen + "designate: {quotas: {recordset_records: 50}}\n"})
	s.CreateZone("example.org.")
	all := func(change string) {
		var running sync.WaitGroup
		for i := range clients {
			running.Go(func() {
				r, err := s.Call(http.MethodPatch, base+"/zones/example.org.",
					patch(rrset(change, challenge, "TXT", 60, fmt.Sprintf(`"%d"`, i))).body)
				if err != nil || r.Status != http.StatusNoContent {
					t.Errorf("%s: %d %s %v", change, r.Status, r.Body, err)
				}
			})
		}
		running.Wait()
	}
	all("EXTEND")
	client := dns.Client{Net: "tcp"}
	r, _, err := client.Exchange(new(dns.Msg).SetQuestion(challenge, dns.TypeTXT), s.DNS[0])
	if err != nil || len(r.Answer) != clients {
		t.Fatalf("DNS has %d of %d challenges (%v)", len(r.Answer), clients, err)
	}
	all("PRUNE")
	if r := s.Ask(challenge, dns.TypeTXT); len(r.Answer) != 0 {
		t.Errorf("%d challenges are left", len(r.Answer))
	}
}
