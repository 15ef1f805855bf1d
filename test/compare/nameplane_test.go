package compare

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/nameplane/nameplane/test/peers"
)

// startNameplane builds the server and brings the zones in by its command line.
func startNameplane(t *testing.T, zones []peers.Zone) *asker {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "nameplane")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/nameplane")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build ./cmd/nameplane: %v\n%s", err, out)
	}
	return start(t, peers.Nameplane(binary), zones)
}

func start(t *testing.T, p peers.Program, zones []peers.Zone) *asker {
	t.Helper()
	s, err := p.Start(t.Context(), zones, peers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	a, err := newAsker(s.Name, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.conn.Close() })
	return a
}
