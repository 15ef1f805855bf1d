package hostile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/server"
)

// storeNames is how many names the zone of the trials has.
const storeNames = 150

// damagedStore is the store of a stopped or killed server.
type damagedStore struct {
	ended syscall.Signal
	db    []byte // without the space that is only reserved for growth
	token []byte
}

// leaveStore fills a zone, makes one last change, and ends the server.
func leaveStore(t *testing.T, end syscall.Signal) damagedStore {
	t.Helper()
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	for from := 0; from < storeNames; from += 50 { // several commits, so that the file gets free pages
		var changes []map[string]any
		for i := from; i < from+50; i++ {
			changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("n%d.example.org.", i), "type": "A",
				"records": []string{fmt.Sprintf("192.0.2.%d", i)}})
		}
		s.Must(http.MethodPost, zone+"/changes", map[string]any{"changes": changes}, nil)
	}
	s.Must(http.MethodPost, zone+"/recordsets", map[string]any{"name": "last.example.org.", "type": "A",
		"records": []string{"192.0.2.200"}}, nil)
	s.End(end)
	db, err := os.ReadFile(filepath.Join(s.Data, "nameplane.db"))
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(db, "\x00"))
	return damagedStore{end, db[:(used+4095)/4096*4096], []byte(s.Token)}
}

// harmStore flips a bit or zeroes a sector. A third of the positions are random, a third are in the header and elements
// of a page, and a third are in or near the address of a record.
func harmStore(b []byte, rnd *rand.Rand) string {
	at := rnd.IntN(len(b))
	switch rnd.IntN(3) {
	case 0:
		at = at/4096*4096 + rnd.IntN(300)
	case 1:
		if i := bytes.Index(b[at:], []byte{192, 0, 2}); i >= 0 {
			at += i + rnd.IntN(8)
		}
	}
	if rnd.IntN(3) == 0 {
		at = at / 512 * 512
		clear(b[at : at+512])
		return fmt.Sprintf("sector at %#x zeroed", at)
	}
	bit := rnd.IntN(8)
	b[at] ^= 1 << bit
	return fmt.Sprintf("bit %d at %#x flipped", bit, at)
}

// TestStoreDamage damages the file of a stopped server at one position, and starts the server. It must refuse the file
// with an error that says what to do, or serve every name as before. A change may be missing only with a report in the
// log.
func TestStoreDamage(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 1))
	outcomes := map[string]int{}
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		left := leaveStore(t, end)
		for range storeTrials / 2 {
			b := bytes.Clone(left.db)
			what := "after " + end.String() + ": " + harmStore(b, rnd)
			t.Run(what, func(t *testing.T) { outcomes[left.trial(t, b)]++ })
		}
	}
	t.Logf("outcomes: %v", outcomes)
	if outcomes["refused"] < storeTrials/10 || outcomes["harmless"] < storeTrials/20 {
		t.Errorf("%v: the trials cover too little", outcomes)
	}
}

// trial starts a server on a damaged copy and returns the outcome.
func (d damagedStore) trial(t *testing.T, db []byte) (outcome string) {
	t.Helper()
	dir := server.Dir(t)
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"nameplane.db": db, "admin.token": d.token} {
		if err := os.WriteFile(filepath.Join(data, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := server.Launch(t, server.Options{Dir: dir})
	defer s.End(syscall.SIGKILL)
	if !servesOrEnds(t, s) {
		status, said := s.Wait(), s.Log()
		if status != 2 || !strings.Contains(said, "is damaged") || !strings.Contains(said, "restore a backup") {
			t.Errorf("status %d, output:\n%s", status, said)
		}
		after, err := os.ReadFile(filepath.Join(data, "nameplane.db"))
		if err != nil || !bytes.Equal(after, db) {
			t.Errorf("the refused file was changed: %v", err)
		}
		return "refused"
	}
	s.Ready()
	reported := strings.Contains(s.Log(), "the store is damaged")
	for i := range storeNames {
		wantAddress(t, s, fmt.Sprintf("n%d.example.org.", i), fmt.Sprintf("192.0.2.%d", i))
	}
	if d.ended == syscall.SIGTERM || !reported {
		wantAddress(t, s, "last.example.org.", "192.0.2.200")
	}
	if reported {
		return "reported"
	}
	return "harmless"
}

// servesOrEnds waits until a server serves or has ended.
func servesOrEnds(t *testing.T, s *server.Server) bool {
	t.Helper()
	for deadline := time.Now().Add(server.Patience); time.Now().Before(deadline); {
		if _, err := os.Stat(filepath.Join(s.Data, "addresses.json")); err == nil {
			return true
		}
		select {
		case <-s.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
	t.Fatal("the server neither serves nor ends")
	return false
}

func wantAddress(t *testing.T, s *server.Server, name, address string) {
	t.Helper()
	r := s.Ask(name, dns.TypeA)
	if len(r.Answer) != 1 {
		t.Errorf("%s is lost without a report: %v", name, r)
		return
	}
	if a, ok := r.Answer[0].(*dns.A); !ok || a.A.String() != address {
		t.Errorf("%s has become %v", name, r.Answer)
	}
}

// TestScrub damages the file of a running server at a position that the server does not read. DNS is served from
// memory; the scrub command and a backup must find and report the damage.
func TestScrub(t *testing.T) {
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	s.Must(http.MethodPost, zone+"/recordsets", map[string]any{"name": "www.example.org.", "type": "TXT",
		"records": []string{`"here is the text"`}}, nil)
	if out := s.Run("scrub"); !strings.Contains(out, "is intact: ") {
		t.Errorf("scrub: %s", out)
	}
	saved := filepath.Join(t.TempDir(), "backup.db")
	s.Run("backup", saved)
	if out := s.Run("scrub", saved); !strings.Contains(out, "is intact: ") {
		t.Errorf("scrub of a backup: %s", out)
	}

	path := filepath.Join(s.Data, "nameplane.db")
	for _, file := range []string{path, saved} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		spoilt := bytes.ReplaceAll(b, []byte("here is the text"), []byte("here is no text!"))
		writeOver(t, file, b, spoilt)
	}
	for _, args := range [][]string{{"scrub"}, {"scrub", saved}, {"backup", saved + "2"}} {
		status, out := runStatus(t, s, args...)
		if status != 2 || !strings.Contains(out, "www.example.org. TXT") || !strings.Contains(out, "damaged") {
			t.Errorf("%v: status %d, output: %s", args, status, out)
		}
	}
	if _, err := os.Stat(saved + "2"); err == nil {
		t.Error("a damaged backup was kept")
	}
	if s.Metric("nameplane_store_damaged") != 1 {
		t.Error("nameplane_store_damaged is not 1")
	}
	var ready struct{ Status string }
	s.Must(http.MethodGet, "/readyz", nil, &ready)
	if ready.Status != "degraded" {
		t.Errorf("/readyz says %q", ready.Status)
	}
	if r := s.Ask("www.example.org.", dns.TypeTXT); len(r.Answer) != 1 ||
		!strings.Contains(r.Answer[0].String(), "here is the text") {
		t.Errorf("DNS answers %v", r)
	}
}

// TestHistoryDamage damages a row of the history of a stopped server. Answers do not need it: the server must start,
// serve, refuse changes, and report the damage.
func TestHistoryDamage(t *testing.T) {
	s := server.Start(t, server.Options{})
	zone := s.CreateZone("example.org.")
	s.Run("record", "set", "example.org", "www", "A", "192.0.2.1")
	s.End(syscall.SIGTERM)
	path := filepath.Join(s.Data, "nameplane.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	writeOver(t, path, b, bytes.ReplaceAll(b, []byte("batch of 1"), []byte("batch of 2")))
	s.Restart()
	wantAddress(t, s, "www.example.org.", "192.0.2.1")
	if addText(t, s, zone, 1) {
		t.Error("a damaged store accepted a change")
	}
	wantState(t, s, "degraded", 0)
	if s.Metric("nameplane_store_damaged") != 1 || !strings.Contains(s.Log(), "the history of zones") {
		t.Errorf("the damage is not reported:\n%s", s.Log())
	}
	if out := s.Run("record", "list", "example.org"); !strings.Contains(out, "192.0.2.1") {
		t.Errorf("record list says:\n%s", out)
	}
}

// writeOver writes the bytes of a file that differ.
func writeOver(t *testing.T, path string, was, now []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	changed := 0
	for i := range now {
		if was[i] != now[i] {
			if _, err := f.WriteAt(now[i:i+1], int64(i)); err != nil {
				t.Fatal(err)
			}
			changed++
		}
	}
	if changed == 0 {
		t.Fatalf("%s does not have the text", path)
	}
}
