package crash

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRestore puts a backup in place of the store, after an orderly end and after a crash, when other files of the store
// may still hold newer changes. What is served then is the backup: neither those changes nor a mixture.
func TestRestore(t *testing.T) {
	for _, end := range bothEnds {
		t.Run(end.String(), func(t *testing.T) {
			data := filepath.Join(newDir(t), "data")
			s := start(t, data)
			z := newFilled(t, s, 50)
			saved := filepath.Join(t.TempDir(), "backup.db")
			if out, err := exec.Command(binary, "backup", saved, "--server", s.url, "--data", data).CombinedOutput(); err != nil {
				t.Fatalf("backup: %v\n%s", err, out)
			}
			for i := range 50 {
				name := fmt.Sprintf("later%d.%s", i, z.Name)
				s.must(t, http.MethodPost, "/v2/zones/"+z.ID+"/recordsets", textSet(name, "later"), nil)
			}
			s.end(t, end)
			b, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, data, map[string][]byte{"nameplane.db": b})

			restored := startRestored(t, data)
			if have := restored.setsOf(t, z, "TXT"); len(have) != 50 {
				t.Errorf("%d record sets, the backup has 50", len(have))
			}
			restored.mustText(t, "n50.example.org.", "text 50")
			restored.mustText(t, "later0.example.org.", "")
			restored.createZone(t, "example.net.")
			restored.end(t, syscall.SIGKILL)
			start(t, data).mustText(t, "n50.example.org.", "text 50")
		})
	}
}

// startRestored starts a server, and does once what it says when it refuses files that do not belong together.
func startRestored(t *testing.T, data string) *server {
	t.Helper()
	s := launch(t, data)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(data, "addresses.json")); err == nil {
			break
		}
		if !s.running() {
			log := storePath(data) + "-wal"
			if said := s.output.String(); !strings.Contains(said, "delete the log") || !strings.Contains(said, log) {
				t.Fatalf("the restored store is refused without the way out:\n%s", said)
			}
			if err := os.Remove(log); err != nil {
				t.Fatal(err)
			}
			return start(t, data)
		}
	}
	s.wait(t)
	return s
}
