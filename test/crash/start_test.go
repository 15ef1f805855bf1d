package crash

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// storePath is the one file that a server keeps its data in.
func storePath(data string) string { return filepath.Join(data, "nameplane.db") }

// TestDamagedStore makes sure that a server which finds garbage says so, and leaves it for those who can repair it.
func TestDamagedStore(t *testing.T) {
	data := filepath.Join(newDir(t), "data")
	s := start(t, data)
	newFilled(t, s, 300)
	if status := s.end(t, syscall.SIGTERM); status != 0 {
		t.Fatalf("exit status %d:\n%s", status, s.output)
	}
	intact, err := os.ReadFile(storePath(data))
	if err != nil {
		t.Fatal(err)
	}
	garbage := bytes.Repeat([]byte{0xA5}, 4096)
	tests := []struct {
		name   string
		damage func(b []byte) []byte
	}{
		{"first pages overwritten", func(b []byte) []byte { copy(b, garbage); copy(b[4096:], garbage); return b }},
		{"every page after them overwritten", func(b []byte) []byte {
			for at := 2 * 4096; at+4096 <= 256<<10; at += 4096 {
				copy(b[at:], garbage)
			}
			return b
		}},
		{"a part of every page overwritten", func(b []byte) []byte {
			for at := 2 * 4096; at+4096 <= 256<<10; at += 4096 {
				copy(b[at:at+64], garbage)
			}
			return b
		}},
		{"cut off", func(b []byte) []byte { return b[:5*4096] }},
		{"a text file", func([]byte) []byte { return []byte("this is not a store\n") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			damaged := tt.damage(bytes.Clone(intact))
			if err := os.WriteFile(storePath(data), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s := launch(t, data)
			status, said := s.ended(t), s.output.String()
			if status != 2 || !strings.Contains(said, storePath(data)) || !strings.Contains(said, "damaged") ||
				!strings.Contains(said, "restore a backup") {
				t.Errorf("status %d, said:\n%s", status, said)
			}
			now, err := os.ReadFile(storePath(data))
			if err != nil || sha256.Sum256(now) != sha256.Sum256(damaged) {
				t.Errorf("the damaged file was changed (%v)", err)
			}
		})
	}
	// Nothing that the failed starts did keeps the intact file from being used again.
	if err := os.WriteFile(storePath(data), intact, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, data).mustText(t, "n1.example.org.", "text 1")
}

// newFilled makes example.org with sets n1 to nN.
func newFilled(t *testing.T, s *server, n int) zone {
	t.Helper()
	z := s.createZone(t, "example.org.")
	var changes []map[string]any
	for i := 1; i <= n; i++ {
		changes = append(changes, map[string]any{"action": "create", "name": fmt.Sprintf("n%d.%s", i, z.Name), "type": "TXT",
			"records": quote(fmt.Sprintf("text %d", i))})
	}
	s.must(t, http.MethodPost, "/v2/zones/"+z.ID+"/changes", map[string]any{"changes": changes}, nil)
	return z
}

func TestSecondServer(t *testing.T) {
	data := filepath.Join(newDir(t), "data")
	first := start(t, data)
	z := newFilled(t, first, 1)
	// launch takes addresses.json away, which the second server must not write.
	second := launch(t, data)
	status, said := second.ended(t), second.output.String()
	if status != 2 || !strings.Contains(said, storePath(data)) || !strings.Contains(said, "another") {
		t.Errorf("status %d, said:\n%s", status, said)
	}
	t.Logf("said: %s", said)
	if _, err := os.Stat(filepath.Join(data, "addresses.json")); err == nil {
		t.Error("the second server wrote its addresses")
	}
	first.mustText(t, "n1.example.org.", "text 1")
	first.must(t, http.MethodPost, "/v2/zones/"+z.ID+"/recordsets", textSet("more.example.org.", "more"), nil)
	first.mustText(t, "more.example.org.", "more")
}

// TestUnprivileged looks at every thread: one that kept root would be enough for an attacker.
func TestUnprivileged(t *testing.T) {
	data := filepath.Join(newDir(t), "data")
	s := start(t, data)
	newFilled(t, s, 1)
	// The addresses are written before root is dropped; a request is answered after.
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.cmd.Process.Pid))
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
	if status := s.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.output)
	}
	again := start(t, data)
	again.mustText(t, "n1.example.org.", "text 1")
	again.createZone(t, "example.net.")
}
