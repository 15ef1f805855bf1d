package hostile

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"github.com/nameplane/nameplane/test/need"
)

// TestReadOnlyRemount makes the disk of a running server read-only. The server must refuse changes, report the reason,
// and serve DNS. When the disk was mounted again, no acknowledged change is missing and changes are accepted.
//
// The disk is ext4 in a file, and the option abort makes it read-only like an error of the disk does. A plain remount
// is refused (EBUSY) while the store is open for writing, and Linux 6.18 still writes to a mounted device after
// blockdev --setro. After abort, ext4 must be unmounted before it can be written again, so the server stops in between.
func TestReadOnlyRemount(t *testing.T) {
	need.OrFail(t, need.Programs{"mkfs.ext4": "e2fsprogs", "losetup": "mount"})
	device := loopDevice(t)
	dir := ownMount(t, device, "ext4", "")
	s, zone := diskServer(t, dir)
	if !addText(t, s, zone, 0) {
		t.Fatal("a change was refused on a writable disk")
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, "abort"); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < 4; n++ {
		if addText(t, s, zone, n) {
			t.Error("a change was accepted on a read-only disk")
		}
		wantAddress(t, s, "www.example.org.", "192.0.2.1")
	}
	wantState(t, s, "degraded", 0)
	if !strings.Contains(s.Log(), "the store takes no changes") {
		t.Errorf("the log does not say that changes are refused:\n%s", s.Log())
	}
	s.End(syscall.SIGTERM)
	if err := unix.Unmount(dir, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(device, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	for n, want := range []int{dns.RcodeSuccess, dns.RcodeNameError} {
		if r := s.Ask([]string{"n0.example.org.", "n1.example.org."}[n], dns.TypeTXT); r.Rcode != want {
			t.Errorf("change %d: %v", n, r)
		}
	}
	if !addText(t, s, zone, 4) {
		t.Error("a change was refused on a disk that is writable again")
	}
	wantState(t, s, "ok", 1)
}

// loopDevice returns a block device of 40 MB with an empty ext4.
func loopDevice(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	run := func(args ...string) string {
		t.Helper()
		path, err := need.Installed(args[0])
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path, args[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("mkfs.ext4", "-q", file, "40M")
	device := run("losetup", "--find", "--show", file)
	t.Cleanup(func() { run("losetup", "--detach", device) })
	return device
}
