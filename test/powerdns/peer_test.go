// Package powerdns compares the PowerDNS API of nameplane with a PowerDNS server, and uses it with lego.
//
// Start with TestDifferential in differential_test.go; requests_test.go generates its requests.
package powerdns

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

var programs = need.Programs{"pdns_server": "pdns-server", "sqlite3": "sqlite3", "lego": "lego", "pebble": "pebble",
	"openssl": "openssl"}

// apiKey is the key of the PowerDNS server.
const apiKey = "key"

// startPeer starts PowerDNS on loopback with an empty database, and returns the URL of its API. Its SOA records have
// the fields of those of nameplane.
func startPeer(t *testing.T) string {
	t.Helper()
	dir := server.Dir(t)
	dns, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	web, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "pdns.sqlite3")
	create := exec.Command("sh", "-c", `sqlite3 "$1" < /usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql`, "sh",
		file)
	if out, err := create.CombinedOutput(); err != nil {
		t.Fatalf("create the database: %v\n%s", err, out)
	}
	conf := fmt.Sprintf(`launch=gsqlite3
gsqlite3-database=%s
gsqlite3-pragma-synchronous=0
config-dir=%s
socket-dir=%s
local-address=127.0.0.1
local-port=%d
primary=yes
secondary=yes
xfr-cycle-interval=3600
default-soa-content=ns1.localhost hostmaster.@ 0 3500 600 86400 3600
zone-cache-refresh-interval=0
query-cache-ttl=0
cache-ttl=0
negquery-cache-ttl=0
security-poll-suffix=
api=yes
api-key=%s
webserver=yes
webserver-address=127.0.0.1
webserver-port=%d
webserver-allow-from=127.0.0.1
webserver-loglevel=none
daemon=no
guardian=no
write-pid=no
loglevel=4
`, file, dir, dir, dns, apiKey, web)
	if err := os.WriteFile(filepath.Join(dir, "pdns.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	program, err := need.Installed("pdns_server")
	if err != nil {
		t.Fatal(err)
	}
	p := &server.Process{Name: "PowerDNS", Command: []string{program, "--config-dir=" + dir}, WorkDir: dir,
		LogFile: filepath.Join(dir, "log")}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Log(p.LogTail())
		}
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(web))
	server.Eventually(t, "PowerDNS listens", func() bool {
		if p.Ended() {
			t.Fatalf("PowerDNS ended at its start\n%s", p.LogTail())
		}
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return "http://" + addr
}
