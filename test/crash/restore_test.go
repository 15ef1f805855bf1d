package crash

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nameplane/nameplane/test/server"
)

// TestRestore replaces the store with a backup, after a clean shutdown and after a crash. The server must then serve
// the backup: no newer change, and no mixture.
func TestRestore(t *testing.T) {
	for _, end := range bothEnds {
		t.Run(end.String(), func(t *testing.T) {
			data := filepath.Join(server.Dir(t), "data")
			s := start(t, data)
			z := newFilled(t, s, 50)
			saved := filepath.Join(t.TempDir(), "backup.db")
			if out, err := exec.Command(s.Command[0], "backup", saved, "--server", s.HTTP, "--data",
				data).CombinedOutput(); err != nil {
				t.Fatalf("backup: %v\n%s", err, out)
			}
			for i := range 50 {
				name := fmt.Sprintf("later%d.%s", i, z.Name)
				s.Must(http.MethodPost, "/v2/zones/"+z.ID+"/recordsets", textSet(name, "later"), nil)
			}
			s.End(end)
			b, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, data, map[string][]byte{"nameplane.db": b})

			restored := start(t, data)
			if have := restored.setsOf(t, z, "TXT"); len(have) != 50 {
				t.Errorf("%d record sets, the backup has 50", len(have))
			}
			restored.mustText(t, "n50.example.org.", "text 50")
			restored.mustText(t, "later0.example.org.", "")
			restored.createZone(t, "example.net.")
			restored.End(syscall.SIGKILL)
			start(t, data).mustText(t, "n50.example.org.", "text 50")
		})
	}
}
