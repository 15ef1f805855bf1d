package lab_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/probe"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/rr"
)

// TestNothingLeaves checks that no address outside the lab can be reached.
func TestNothingLeaves(t *testing.T) {
	dir := t.TempDir()
	l := start(t, lab.Options{Dir: dir})
	other, err := lab.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*lab.Lab{l, other} {
		for _, address := range []string{"192.0.2.1:53", "127.0.0.1:80", "198.41.0.4:80", "example.com:443", "localhost:53",
			"data.iana.org:80", "[::1]:53"} {
			for _, network := range []string{"udp", "tcp", "tcp4", "udp6"} {
				if c, err := l.Dial(t.Context(), network, address); !errors.Is(err, lab.ErrElsewhere) {
					t.Errorf("Dial(%s, %s) = %v, %v", network, address, c, err)
				}
			}
		}
		socket, err := l.Listen(t.Context(), "udp4")
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range []string{"192.0.2.1:53", "127.0.0.1:9"} {
			to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
			if _, err := socket.WriteTo([]byte("x"), to); !errors.Is(err, lab.ErrElsewhere) {
				t.Errorf("WriteTo(%s): %v", address, err)
			}
		}
		socket.Close()
	}
}

// TestFolder checks which files a lab writes, and that it removes them.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lab")
	if _, err := lab.Load(dir); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("Load before: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l, err := lab.Start(ctx, lab.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(dir, "lab.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"lab.json", "ca.pem"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := lab.Start(t.Context(), lab.Options{Dir: dir}); !errors.Is(err, lab.ErrRunning) {
		t.Errorf("a second lab in the folder: %v", err)
	}
	if _, err := lab.Load(dir); err != nil {
		t.Errorf("Load after the second lab was refused: %v", err)
	}
	cancel()
	if err := l.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	// A lab that was killed leaves its file.
	if err := os.WriteFile(filepath.Join(dir, "lab.json"), written, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Load(dir); !errors.Is(err, lab.ErrNoLab) {
		t.Errorf("Load of a killed lab: %v", err)
	}
}

func TestFlip(t *testing.T) {
	dir := t.TempDir()
	start(t, lab.Options{Dir: dir})
	l, err := lab.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := dnsname.MustParse("www.example.com.")
	if n, err := l.Flip(t.Context(), name, rr.TypeTXT, []string{`"two words"`, "three"}); n != 2 || err != nil {
		t.Errorf("Flip = %d, %v", n, err)
	}
	query := new(dns.Msg).SetQuestion(name.String(), dns.TypeTXT)
	server := resolve.Server{Addr: netip.MustParseAddrPort("93.184.2.1:53")}
	m, err := (&resolve.Client{Dial: l.Dial}).Exchange(t.Context(), server, query)
	if err != nil || len(m.Answer) != 2 || m.Answer[0].(*dns.TXT).Txt[0] != "two words" {
		t.Errorf("got %v, %v", m, err)
	}
	_, err = l.Flip(t.Context(), name, rr.TypeA, []string{"nonsense"})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("Flip to nonsense: %v", err)
	}
	name = dnsname.MustParse("www.lame.nowhere.test.")
	if _, err := l.Flip(t.Context(), name, rr.TypeA, []string{"192.0.2.1", "x"}); err == nil {
		t.Error("Flip accepted partly invalid data")
	}
}

// TestWrongSource receives a reply from another server through the socket of the lab. It must have its public
// address.
func TestWrongSource(t *testing.T) {
	l := start(t, lab.Options{})
	p := &probe.Prober{Dial: l.Dial, Listen: l.Listen}
	got := p.Probe(t.Context(), dnsname.MustParse("source.test."), netip.MustParseAddr("23.192.83.1"), nil)
	if len(got) != 1 || got[0].Verdict != probe.No || got[0].From.String() != "23.192.83.2:53" {
		t.Errorf("got %+v", got)
	}
}

// TestTLS queries resolvers over TLS with the names in their certificates.
func TestTLS(t *testing.T) {
	l := start(t, lab.Options{})
	for server, good := range map[string]bool{"tls://8.8.8.8#dns.google": true, "tls://[2001:4860:4860::8844]": true,
		"tls://194.242.2.2#dns.mullvad.net": true, "tls://8.8.8.8#dns.mullvad.net": false, "tls://4.2.2.1": false} {
		s, err := resolve.ParseServer(server)
		if err != nil {
			t.Fatal(err)
		}
		c := &resolve.Client{Dial: l.Dial, Roots: l.Roots}
		m, err := c.Exchange(t.Context(), s, new(dns.Msg).SetQuestion("www.example.com.", dns.TypeA))
		if (err == nil && len(m.Answer) == 1) != good {
			t.Errorf("%s: %v, %v", server, m, err)
		}
		c.CloseIdle()
	}
}

// TestTable checks that the list of domains is consistent.
func TestTable(t *testing.T) {
	l := start(t, lab.Options{})
	seen := map[string]bool{}
	for _, d := range l.Domains {
		if seen[d.Name] || !strings.HasPrefix(d.Try, "nameplane ") || len(d.Finds) > 0 && d.Wrong == "" {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
		for _, id := range d.Finds {
			if _, ok := check.Find(id); !ok {
				t.Errorf("%s: there is no check %s", d.Name, id)
			}
		}
	}
	if len(seen) < 50 {
		t.Errorf("only %d domains", len(seen))
	}
}

// TestFileMistakes checks that errors in text files have a file name and a line number.
func TestFileMistakes(t *testing.T) {
	for text, want := range map[string]string{
		" zone .":       "a.txt:1: the line is not in a section",
		"server":        "a.txt:1: server needs a name",
		"mountain high": `a.txt:1: "mountain"`,
		"group root 198.41.0.4\nserver root\n dance": `a.txt:2: line 1: "dance"`,
		"resolver x nowhere":                         "a.txt:1:",
		"hosted a.info.":                             "a.txt:1: a.info. has no parent",
		"own a.com. 192.0.2.1":                       "a.txt:1: give the addresses",
		"domain a.com\n colour red":                  `a.txt:1: "colour"`,
		"tld com\n rdap x":                           "a.txt:1: give a host",
		"registration a.com\n created soon":          "a.txt:1:",
		"group root 192.0.2.1\nserver root\n zone .": "the group root",
	} {
		files := fstest.MapFS{"internet/a.txt": {Data: []byte(text)}}
		_, err := lab.Start(t.Context(), lab.Options{Memory: true, Files: files})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: err = %v, want %q", text, err, want)
		}
	}
}
