package crash

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/server"
)

// disk is a data directory whose disk can be made too small and large again while a server uses it.
type disk struct {
	dir         string
	args        []string // arguments of serve
	shrink, let func(t *testing.T, s *node)
}

// TestDiskFull fills the disk under a server. Without root, no small disk can be mounted: then a limit of the file size
// makes the same write fail.
func TestDiskFull(t *testing.T) {
	t.Run("limit", func(t *testing.T) { diskFull(t, limitedDisk(t)) })
	if os.Geteuid() == 0 {
		// The store reserves space before it uses it, which fits only into the larger disk.
		for _, size := range []string{"40m", "96m"} {
			t.Run("tmpfs "+size, func(t *testing.T) { diskFull(t, tmpfsDisk(t, size)) })
		}
	}
}

func limitedDisk(t *testing.T) disk {
	limit := func(size uint64) func(*testing.T, *node) {
		return func(t *testing.T, s *node) {
			t.Helper()
			var old unix.Rlimit
			if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, nil, &old); err != nil {
				t.Fatal(err)
			}
			if err := unix.Prlimit(s.PID(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: old.Max}, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Only the user of a process can change its limits, unless with a capability that root in a container lacks.
	var args []string
	if os.Geteuid() == 0 {
		args = []string{"--user", "root"}
	}
	return disk{server.Dir(t), args, limit(512 << 10), limit(unix.RLIM_INFINITY)}
}

func tmpfsDisk(t *testing.T, size string) disk {
	dir := server.Dir(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	return disk{dir, nil,
		func(t *testing.T, _ *node) {
			t.Helper()
			f, err := os.Create(ballast)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			block, size := make([]byte, 64<<10), int64(0)
			for err == nil {
				var n int
				n, err = f.Write(block)
				size += int64(n)
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			if err := f.Truncate(size - 512<<10); err != nil { // leaves space for some changes
				t.Fatal(err)
			}
		},
		func(t *testing.T, _ *node) {
			t.Helper()
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		}}
}

// filler creates record sets, and records which were acknowledged.
type filler struct {
	zone    zone
	n       int
	acked   map[string]bool
	refused map[string]bool
	last    server.Response // the last refusal
}

func (f *filler) create(t *testing.T, s *node) bool {
	t.Helper()
	f.n++
	name := fmt.Sprintf("n%d.%s", f.n, f.zone.Name)
	long := strings.Repeat(strings.Repeat("x", 250)+`" "`, 12)
	r, err := s.Call(http.MethodPost, "/v2/zones/"+f.zone.ID+"/recordsets",
		recordSet{Name: name, Type: "TXT", Records: []string{`"` + long + `"`}})
	if err != nil {
		t.Fatalf("create %s: %v\n%s", name, err, s.Log())
	}
	if r.OK() {
		f.acked[name] = true
		return true
	}
	f.refused[name], f.last = true, r
	return false
}

// batch creates many sets at once, more than fit.
func (f *filler) batch(t *testing.T, s *node) bool {
	t.Helper()
	var changes []map[string]any
	for i := range 1000 {
		f.n++
		name := fmt.Sprintf("b%d-%d.%s", f.n, i, f.zone.Name)
		f.refused[name] = true
		changes = append(changes, map[string]any{"action": "create", "name": name, "type": "TXT",
			"records": []string{`"` + strings.Repeat("y", 250) + `"`}})
	}
	r, err := s.Call(http.MethodPost, "/v2/zones/"+f.zone.ID+"/changes", map[string]any{"changes": changes})
	if err != nil {
		t.Fatal(err)
	}
	f.last = r
	return r.OK()
}

// check checks that the server has all acknowledged sets and no others.
func (f *filler) check(t *testing.T, s *node) {
	t.Helper()
	have := s.setsOf(t, f.zone, "TXT")
	if len(have) != len(f.acked) {
		t.Errorf("the API has %d sets, %d were acknowledged", len(have), len(f.acked))
	}
	a := newAsker(t, s.DNS[0])
	for name := range f.acked {
		if _, ok := have[name]; !ok {
			t.Errorf("%s was acknowledged and is not in the API", name)
		}
		if r, err := a.ask(name, 16); err != nil || len(r.Answer) == 0 && !r.Truncated {
			t.Errorf("%s was acknowledged and is not served: %v, %v", name, r, err)
		}
	}
	for name := range f.refused {
		if text, err := a.text(name); err != nil || text != "" {
			t.Errorf("%s was refused and is served: %q, %v", name, text, err)
		}
	}
}

func diskFull(t *testing.T, d disk) {
	data := filepath.Join(d.dir, "data")
	s := start(t, data, d.args...)
	f := &filler{zone: s.createZone(t, "example.org."), acked: map[string]bool{}, refused: map[string]bool{}}
	f.create(t, s)
	d.shrink(t, s)
	for range 3 { // the server must survive several refusals
		for n := 0; f.create(t, s); n++ {
			if n > 5000 {
				t.Fatal("the disk does not get full")
			}
		}
		checkRefusal(t, f.last)
	}
	if f.batch(t, s) {
		t.Error("a full disk accepted a batch")
	}
	checkRefusal(t, f.last)
	f.check(t, s)
	if s.Metric("nameplane_commit_failures_total") == 0 {
		t.Error("/metrics counts no commit failures")
	}
	s.Must(http.MethodGet, "/readyz", nil, nil)
	t.Logf("%d changes fitted, %d were refused", len(f.acked), len(f.refused))

	d.let(t, s)
	if !f.create(t, s) {
		t.Errorf("there is space again, but a change is refused: %d %s", f.last.Status, f.last.Body)
	}
	f.check(t, s)
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d:\n%s", status, s.Log())
	}
	f.check(t, start(t, data))
}

func checkRefusal(t *testing.T, r server.Response) {
	t.Helper()
	body := decode[struct {
		Code          int
		Type, Message string
	}](t, r.Body)
	if r.Status != http.StatusServiceUnavailable || body.Code != r.Status || body.Type != "service_unavailable" ||
		body.Message == "" || r.Header.Get("Retry-After") == "" {
		t.Errorf("refusal %d %v %s", r.Status, r.Header, r.Body)
	}
	t.Logf("refused: %s", body.Message)
}
