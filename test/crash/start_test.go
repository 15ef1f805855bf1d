package crash

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/test/server"
)

// storePath returns the path of the store's file.
func storePath(data string) string { return filepath.Join(data, "nameplane.db") }

// damages lists kinds of damage to a store's file.
var damages = []struct {
	name   string
	damage func(b []byte) []byte
}{
	{"first pages overwritten", func(b []byte) []byte { return overwrite(b, 0, 8192, 4096) }},
	{"every page after them overwritten", func(b []byte) []byte { return overwrite(b, 8192, 256<<10, 4096) }},
	{"a part of every page overwritten", func(b []byte) []byte { return overwrite(b, 8192, 256<<10, 64) }},
	{"cut off", func(b []byte) []byte { return b[:5*4096] }},
	{"a text file", func([]byte) []byte { return []byte("this is not a store\n") }},
}

var bothEnds = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}

// overwrite writes garbage to the first n bytes of every page.
func overwrite(b []byte, from, to, n int) []byte {
	for at := from; at+4096 <= to; at += 4096 {
		copy(b[at:at+n], bytes.Repeat([]byte{0xA5}, n))
	}
	return b
}

// TestDamagedStore checks that a server that finds a damaged file reports it, and leaves the file unchanged for repair.
func TestDamagedStore(t *testing.T) {
	for _, end := range bothEnds {
		data := filepath.Join(server.Dir(t), "data")
		s := start(t, data)
		newFilled(t, s, 300)
		s.End(end)
		intact := written(t, data)
		for _, tt := range damages {
			t.Run(tt.name+" after "+end.String(), func(t *testing.T) {
				rewrite(t, data, intact)
				refuseDamaged(t, data, tt.damage(bytes.Clone(intact["nameplane.db"])))
			})
		}
		// After the failed starts, the intact files must still be usable.
		rewrite(t, data, intact)
		start(t, data).mustText(t, "n1.example.org.", "text 1")
	}
}

func rewrite(t *testing.T, data string, files map[string][]byte) {
	t.Helper()
	for name, b := range files {
		if err := os.WriteFile(filepath.Join(data, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func refuseDamaged(t *testing.T, data string, damaged []byte) {
	t.Helper()
	rewrite(t, data, map[string][]byte{"nameplane.db": damaged})
	before := written(t, data)
	delete(before, "addresses.json") // launch removes it
	s := launch(t, data)
	status, said := s.Wait(), s.Log()
	if status != 2 || !strings.Contains(said, storePath(data)) || !strings.Contains(said, "damaged") ||
		!strings.Contains(said, "restore a backup") {
		t.Errorf("status %d, output:\n%s", status, said)
	}
	after := written(t, data)
	for name, b := range before {
		if !bytes.Equal(after[name], b) {
			t.Errorf("%s was changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d files before the start, %d after it", len(before), len(after))
	}
}

// newFilled creates example.org with the sets n1 to nN.
func newFilled(t *testing.T, s *node, n int) zone {
	t.Helper()
	z := s.createZone(t, "example.org.")
	var changes []map[string]any
	for i := 1; i <= n; i++ {
		changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("n%d.%s", i, z.Name), "type": "TXT",
			"records": quote(fmt.Sprintf("text %d", i))})
	}
	s.Must(http.MethodPost, "/v2/zones/"+z.ID+"/changes", map[string]any{"changes": changes}, nil)
	return z
}

func TestSecondServer(t *testing.T) {
	data := filepath.Join(server.Dir(t), "data")
	first := start(t, data)
	z := newFilled(t, first, 1)
	// launch removes addresses.json, and the second server must not write it.
	second := launch(t, data)
	status, said := second.Wait(), second.Log()
	if status != 2 || !strings.Contains(said, storePath(data)) || !strings.Contains(said, "another") {
		t.Errorf("status %d, output:\n%s", status, said)
	}
	t.Logf("said: %s", said)
	if _, err := os.Stat(filepath.Join(data, "addresses.json")); err == nil {
		t.Error("the second server wrote its addresses")
	}
	first.mustText(t, "n1.example.org.", "text 1")
	first.Must(http.MethodPost, "/v2/zones/"+z.ID+"/recordsets", textSet("more.example.org.", "more"), nil)
	first.mustText(t, "more.example.org.", "more")
}

// TestUnprivileged checks every thread: one thread with root would be enough for an attacker.
func TestUnprivileged(t *testing.T) {
	data := filepath.Join(server.Dir(t), "data")
	s := start(t, data)
	newFilled(t, s, 1)
	// The addresses are written before root is dropped. A request is answered after that.
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.PID()))
	if err != nil || len(threads) == 0 {
		t.Fatalf("threads %v: %v", threads, err)
	}
	for _, path := range threads {
		status, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for line := range strings.Lines(string(status)) {
			f := strings.Fields(line)
			switch f[0] {
			case "Uid:", "Gid:":
				for _, id := range f[1:] {
					if id == "0" {
						t.Errorf("%s: %s", path, line)
					}
				}
			case "CapEff:", "CapPrm:":
				if strings.Trim(f[1], "0") != "" {
					t.Errorf("%s: %s", path, line)
				}
			}
		}
	}
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.Log())
	}
	again := start(t, data)
	again.mustText(t, "n1.example.org.", "text 1")
	again.createZone(t, "example.net.")
}
