package compare

import (
	"testing"

	"github.com/nameplane/nameplane/test/peers"
	"github.com/nameplane/nameplane/test/server"
)

// startNameplane starts nameplane and imports the zones with its command line.
func startNameplane(t *testing.T, zones []peers.Zone) *asker {
	t.Helper()
	return start(t, peers.Nameplane(server.Binary(t)), zones)
}

func start(t *testing.T, p peers.Program, zones []peers.Zone) *asker {
	t.Helper()
	s := peers.Start(t, p, zones, peers.Options{})
	a, err := newAsker(s.Name, s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.conn.Close() })
	return a
}
