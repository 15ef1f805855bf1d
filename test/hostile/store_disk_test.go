package hostile

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// runStatus runs a command of nameplane and returns its exit status and output.
func runStatus(t *testing.T, s *server.Server, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.Command[0], args...)
	cmd.Env = append(os.Environ(), "NAMEPLANE_SERVER="+s.HTTP, "NAMEPLANE_TOKEN="+s.Token)
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// ownDisk mounts a small file system in memory, and returns its directory.
func ownDisk(t *testing.T, size string) string {
	t.Helper()
	return ownMount(t, "tmpfs", "tmpfs", "mode=0755,size="+size)
}

// ownMount mounts a file system in a mount namespace of the test, and returns its directory. The namespace belongs to
// the thread of the test, and ends with it.
func ownMount(t *testing.T, device, kind, options string) string {
	t.Helper()
	need.OrFail(t, nil) // root
	dir := server.Dir(t)
	runtime.LockOSThread() // never unlocked, because the thread must not be used for anything else
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Fatalf("a mount namespace: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(device, dir, kind, 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// remount changes the flags of a disk of ownDisk.
func remount(t *testing.T, dir string, flags uintptr) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
		t.Fatal(err)
	}
}

// diskServer starts a server with fixed ports on its own disk, and fills a zone.
func diskServer(t *testing.T, dir string) (s *server.Server, zone string) {
	t.Helper()
	ports := make([]int, 2)
	for i := range ports {
		var err error
		if ports[i], err = server.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	s = server.Start(t, server.Options{Dir: dir,
		Config: fmt.Sprintf("dns: {listen: ['127.0.0.1:%d']}\nhttp: {listen: '127.0.0.1:%d'}\n", ports[0], ports[1])})
	zone = s.CreateZone("example.org.")
	s.Must(http.MethodPost, zone+"/recordsets", map[string]any{"name": "www.example.org.", "type": "A",
		"records": []string{"192.0.2.1"}}, nil)
	return s, zone
}

// stoppedDiskServer is a diskServer that was stopped.
func stoppedDiskServer(t *testing.T) (s *server.Server, zone string) {
	t.Helper()
	s, zone = diskServer(t, ownDisk(t, "40m"))
	if status := s.End(syscall.SIGTERM); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	return s, zone
}

// serveAgain starts the server on a disk where it cannot write its addresses, and waits until it is ready.
func serveAgain(t *testing.T, s *server.Server) {
	t.Helper()
	if err := s.Process.Start(); err != nil {
		t.Fatal(err)
	}
	server.Eventually(t, "the server is ready", func() bool {
		if s.Ended() {
			t.Fatalf("the server ended\n%s", s.LogTail())
		}
		r, err := s.Call(http.MethodGet, "/readyz", nil)
		return err == nil && r.OK()
	})
	wantAddress(t, s, "www.example.org.", "192.0.2.1")
}

// addText creates a record set and reports whether the server accepted it. A refusal must be 503 with a reason.
func addText(t *testing.T, s *server.Server, zone string, n int) bool {
	t.Helper()
	text := strings.Repeat(strings.Repeat("x", 250)+`" "`, 12)
	r, err := s.Call(http.MethodPost, zone+"/recordsets", map[string]any{"name": fmt.Sprintf("n%d.example.org.", n),
		"type": "TXT", "records": []string{`"` + text + `"`}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() && (r.Status != http.StatusServiceUnavailable || !strings.Contains(string(r.Body), "service_unavailable")) {
		t.Fatalf("a change is refused with %d %s", r.Status, r.Body)
	}
	return r.OK()
}

// wantState compares what the server reports about its store.
func wantState(t *testing.T, s *server.Server, status string, writable float64) {
	t.Helper()
	var ready struct {
		Status string
		Checks map[string]string
	}
	s.Must(http.MethodGet, "/readyz", nil, &ready)
	if ready.Status != status || ready.Checks["store"] != status {
		t.Errorf("/readyz says %+v, want %s", ready, status)
	}
	if got := s.Metric("nameplane_store_writable"); got != writable {
		t.Errorf("nameplane_store_writable is %v, want %v", got, writable)
	}
}

// TestStartOnReadOnlyDisk starts a server on a read-only disk. It must serve DNS, refuse changes, report the reason,
// and accept changes when the disk is writable again.
func TestStartOnReadOnlyDisk(t *testing.T) {
	s, zone := stoppedDiskServer(t)
	remount(t, s.Dir, unix.MS_RDONLY)
	serveAgain(t, s)
	if !strings.Contains(s.Log(), "the store takes no changes") || !strings.Contains(s.Log(), "read-only file system") {
		t.Errorf("the log does not say that the disk is read-only:\n%s", s.Log())
	}
	wantState(t, s, "degraded", 0)
	for n := range 3 {
		if addText(t, s, zone, n) {
			t.Error("a change was accepted on a read-only disk")
		}
	}
	remount(t, s.Dir, 0)
	server.Eventually(t, "a change is taken", func() bool { return addText(t, s, zone, 10) })
	wantState(t, s, "ok", 1)
	if !strings.Contains(s.Log(), "the store takes changes again") {
		t.Errorf("the log does not say that changes are accepted again:\n%s", s.Log())
	}
	s.Restart()
	if r := s.Ask("n10.example.org.", dns.TypeTXT); r.Rcode != dns.RcodeSuccess {
		t.Errorf("the change is lost: %v", r)
	}
}

// TestStartOnFullDisk starts a server on a disk without a free byte.
func TestStartOnFullDisk(t *testing.T) {
	s, zone := stoppedDiskServer(t)
	if err := os.Remove(filepath.Join(s.Data, "addresses.json")); err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(s.Dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	serveAgain(t, s)
	if !strings.Contains(s.Log(), "cannot write the addresses") {
		t.Errorf("the log does not say that the addresses are missing:\n%s", s.Log())
	}
	n := 0
	for addText(t, s, zone, n) { // some changes fit into free pages
		if n++; n > 2000 {
			t.Fatal("the disk is not full")
		}
	}
	wantState(t, s, "degraded", 0)
	if !strings.Contains(s.Log(), "the store takes no changes") || !strings.Contains(s.Log(), "no space left on device") {
		t.Errorf("the log does not say that the disk is full:\n%s", s.Log())
	}
	wantAddress(t, s, "www.example.org.", "192.0.2.1")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if !addText(t, s, zone, n) {
		t.Error("there is space again, but a change is refused")
	}
	wantState(t, s, "ok", 1)
}
