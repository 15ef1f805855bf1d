package system

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nameplane/nameplane/kubernetes/test/cluster"
	"github.com/nameplane/nameplane/kubernetes/test/egress/rig"
)

// TestSchedules injects random faults, lets every part recover, and checks that the state matches the firewalls. It
// runs as many schedules as fit into a minute, or NAMEPLANE_SCHEDULES: make bench-egress runs 200. A failure reports
// the random seed of its schedule; NAMEPLANE_SEED starts with that seed.
func TestSchedules(t *testing.T) {
	cluster.Need(t)
	sys := rig.Start(t, rig.Options{Nodes: 2, Bin: os.Getenv("NAMEPLANE_BIN")})
	want, limit := number(t, "NAMEPLANE_SCHEDULES", 200), time.Minute
	if os.Getenv("NAMEPLANE_SCHEDULES") != "" {
		limit = time.Hour
	}
	seed := uint64(number(t, "NAMEPLANE_SEED", 1))
	chaos := rig.NewChaos(sys)
	begun, done := time.Now(), 0
	for ; done < want && time.Since(begun) < limit; done++ {
		if err := chaos.Schedule(rand.New(rand.NewPCG(seed+uint64(done), 0))); err != nil {
			t.Fatalf("schedule with NAMEPLANE_SEED=%d: %v\n%s", seed+uint64(done), err, sys.Logs())
		}
	}
	t.Logf("%d schedules in %v, from seed %d on: %v", done, time.Since(begun).Round(time.Second), seed, chaos.Spent)
	if done == 0 {
		t.Error(errors.New("no schedule was done"))
	}
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", name, err))
	}
	return n
}
