package hostile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/test/need"
	"github.com/nameplane/nameplane/test/server"
)

// fakeClock changes the wall clock of one running Go program.
//
// The faketime of Debian replaces functions of libc, which Go programs do not call. They call clock_gettime in the
// vDSO, the code that the kernel maps into each process. So the test writes its own clock_gettime there, which adds an
// offset to the wall clock. The monotonic clock is unchanged, as with clock_settime.
type fakeClock struct {
	mem    *os.File // memory of the process
	offset int64    // address of the offset, in seconds
}

// clockCode is clock_gettime for amd64, followed by the offset.
var clockCode = []byte{
	0xb8, 0xe4, 0, 0, 0, // mov eax, 228 (clock_gettime)
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jne to ret, unless the clock is CLOCK_REALTIME
	0x48, 0x8b, 0x0d, 0x06, 0, 0, 0, // mov rcx, [rip+6]: the offset
	0x48, 0x01, 0x0e, // add [rsi], rcx: the seconds of the result
	0xc3,       // ret
	0x90, 0x90, // nop: the offset begins at a multiple of 8, so that a write of it is atomic
	0, 0, 0, 0, 0, 0, 0, 0,
}

// newFakeClock replaces the clock of a process. It stops the process until no thread runs in the vDSO.
func newFakeClock(t *testing.T, p *server.Process) *fakeClock {
	t.Helper()
	need.OrFail(t, nil) // root
	dir := fmt.Sprintf("/proc/%d/", p.PID())
	m := regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$`).FindSubmatch(readFile(t, dir+"maps"))
	if m == nil {
		t.Fatal("the process has no vDSO")
	}
	from, _ := strconv.ParseInt(string(m[1]), 16, 64)
	to, _ := strconv.ParseInt(string(m[2]), 16, 64)
	mem, err := os.OpenFile(dir+"mem", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mem.Close() })
	image := make([]byte, to-from)
	if _, err := mem.ReadAt(image, from); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	entry := from + symbol(t, image, "__vdso_clock_gettime")
	code := from + symbol(t, image, "__vdso_gettimeofday") // Go does not call it, and it has space
	if code%8 != 0 {
		t.Fatalf("the code would be at %#x, not a multiple of 8", code)
	}
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(code-entry-5))
	server.Eventually(t, "no thread is in the vDSO", func() bool {
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		defer p.Signal(syscall.SIGCONT)
		if !stopped(t, dir, from, to) {
			return false
		}
		for at, b := range map[int64][]byte{code: clockCode, entry: jump} {
			if _, err := mem.WriteAt(b, at); err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	return &fakeClock{mem, code + int64(len(clockCode)) - 8}
}

// symbol returns the offset of a function in a vDSO.
func symbol(t *testing.T, image []byte, name string) int64 {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.DynamicSymbols()
	for _, s := range list {
		if s.Name == name {
			return int64(s.Value)
		}
	}
	t.Fatalf("the vDSO has no %s (%v)", name, err)
	return 0
}

// stopped reports whether all threads of a process are stopped and none is at an address between from and to.
func stopped(t *testing.T, dir string, from, to int64) bool {
	t.Helper()
	threads, err := filepath.Glob(dir + "task/*/syscall")
	if err != nil || len(threads) == 0 {
		t.Fatalf("no threads in %s: %v", dir, err)
	}
	for _, file := range threads {
		words := strings.Fields(string(readFile(t, file)))
		pc, err := strconv.ParseInt(strings.TrimPrefix(words[len(words)-1], "0x"), 16, 64)
		if err != nil || from <= pc && pc < to { // "running" is not a number
			return false
		}
	}
	return true
}

// set moves the clock to an offset from the real one.
func (c *fakeClock) set(t *testing.T, offset time.Duration) {
	t.Helper()
	b := binary.LittleEndian.AppendUint64(nil, uint64(int64(offset/time.Second)))
	if _, err := c.mem.WriteAt(b, c.offset); err != nil {
		t.Fatal(err)
	}
}

// TestClockOfTheServer moves the clock of a running server a day forward and then an hour back, while it takes changes
// and transfers a zone. Serials only grow, sessions and tokens expire and do not come back, and the copy of a zone
// expires without its master.
func TestClockOfTheServer(t *testing.T) {
	s := withAlice(t)
	clock := newFakeClock(t, s.Process)
	zones := tenants{s, t}
	m := newMaster(t, "127.0.0.2", whole)
	own, copied := s.CreateZone("example.org."), zones.secondary("admin", "copied.test.", m)
	zones.arrives(copied, 1)
	w := clockWork{Server: s, t: t, zone: own}
	w.change()
	old := openSession(t, s, alicePassword)
	soon := w.token(time.Now().Add(2 * time.Hour))
	wantSession(t, s, "a session", old, http.StatusOK)
	wantSession(t, s, "a token of two hours", soon, http.StatusOK)

	clock.set(t, 24*time.Hour)
	w.change()
	wantSession(t, s, "a session after a day", old, http.StatusUnauthorized)
	wantSession(t, s, "a token of two hours after a day", soon, http.StatusUnauthorized)
	fresh := openSession(t, s, alicePassword)
	wantSession(t, s, "a new session", fresh, http.StatusOK)
	m.serial.Store(2)
	s.Must(http.MethodPost, copied+"/tasks/xfr", nil, nil, "X-Auth-All-Projects: true")
	zones.arrives(copied, 2)

	clock.set(t, 23*time.Hour)
	w.change()
	wantSession(t, s, "a session from an hour ahead", fresh, http.StatusOK)
	wantSession(t, s, "the first session", old, http.StatusUnauthorized)
	wantSession(t, s, "the first token", soon, http.StatusUnauthorized)
	m.serial.Store(3)
	s.Must(http.MethodPost, copied+"/tasks/xfr", nil, nil, "X-Auth-All-Projects: true")
	zones.arrives(copied, 3)

	m.stop()
	clock.set(t, 49*time.Hour) // the SOA has an expire time of a day
	s.Must(http.MethodPost, copied+"/tasks/xfr", nil, nil, "X-Auth-All-Projects: true")
	server.Eventually(t, "the copy expires", func() bool {
		return s.Ask("www.copied.test.", dns.TypeA).Rcode == dns.RcodeServerFailure
	})
	w.change()
	clock.set(t, -time.Hour)
	w.change()
	s.Restart() // without the fake clock
	w.change()
}

// clockWork makes changes and checks serials.
type clockWork struct {
	*server.Server
	t      *testing.T
	zone   string
	n      int
	serial uint32
}

// change creates a name, and checks that it is served with a serial that is larger than the last one (RFC 1982).
func (w *clockWork) change() {
	w.t.Helper()
	w.n++
	name := fmt.Sprintf("n%d.example.org.", w.n)
	w.Must(http.MethodPost, w.zone+"/recordsets", map[string]any{"name": name, "type": "A",
		"records": []string{"192.0.2.1"}}, nil)
	wantAddress(w.t, w.Server, name, "192.0.2.1")
	serial := w.Ask("example.org.", dns.TypeSOA).Answer[0].(*dns.SOA).Serial
	if w.serial != 0 && int32(serial-w.serial) <= 0 {
		w.t.Errorf("after change %d the serial is %d, and it was %d before", w.n, serial, w.serial)
	}
	w.serial = serial
}

// token creates a token that expires.
func (w *clockWork) token(expires time.Time) string {
	w.t.Helper()
	var made struct{ Token struct{ Token string } }
	w.Must(http.MethodPost, "/access/v1/tokens", map[string]string{"name": "soon", "role": "reader",
		"expires_at": expires.UTC().Format(time.RFC3339)}, &made)
	return made.Token.Token
}
