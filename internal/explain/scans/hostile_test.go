package scans_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/resolve/secure"
	"github.com/nameplane/nameplane/internal/rr"
)

// scanFacts runs one scan whose result is changed by facts.
func scanFacts(t *testing.T, facts func(f *explain.Facts) *explain.Facts) (*scans.Service, scans.Scan) {
	t.Helper()
	w := &fakeScanner{addr: "192.0.2.80"}
	scan := func(ctx context.Context, name dnsname.Name, r scans.Request, past []explain.Past,
		_ func(scans.Progress)) (*explain.Facts, error) {
		f, err := w.scan(ctx, name, r, past, func(scans.Progress) {})
		return facts(f), err
	}
	s, err := scans.Open(openStore(t, filepath.Join(t.TempDir(), "db")), scan, scans.Options{Parse: parse})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return s, finish(t, s, begin(t, s, alice, explain.Analyze, "www.example.org"))
}

// TestTooLarge checks that a zone with long replies still gets a report.
func TestTooLarge(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	for replies, fill := range map[int]func([]byte) (int, error){60: random.Read,
		500: func(b []byte) (int, error) { return len(b), nil }} {
		testTooLarge(t, replies, fill)
	}
}

func testTooLarge(t *testing.T, replies int, fill func([]byte) (int, error)) {
	t.Helper()
	s, x := scanFacts(t, func(f *explain.Facts) *explain.Facts {
		for range replies {
			e := iterate.Exchange{Zone: f.Name, Question: iterate.Question{Name: f.Name, Type: rr.TypeA}, Class: iterate.Answer,
				Reply: make([]byte, 60_000)}
			_, _ = fill(e.Reply)
			f.Exchanges = append(f.Exchanges, e)
		}
		return f
	})
	facts, err := factsOf(s, "p1", x.ID)
	if x.State != scans.Done || err != nil || len(facts.Exchanges) != replies || facts.Exchanges[0].Error == "" {
		t.Errorf("%s %q, %v", x.State, x.Problem, err)
	}
}

// TestTooLargeSigned checks that facts that are too large keep the replies that decide the DNSSEC state. If these
// replies are too large themselves, the state is unknown.
func TestTooLargeSigned(t *testing.T) {
	text, err := os.ReadFile("../gather/testdata/analyze-schema2-signed.json")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	for keys, want := range map[int]secure.State{1: secure.Secure, 60: secure.Unknown} {
		s, x := scanFacts(t, func(*explain.Facts) *explain.Facts {
			f, err := explain.Unmarshal(text)
			if err != nil {
				t.Error(err)
				return nil
			}
			for i := range 60 {
				e := iterate.Exchange{Question: iterate.Question{Name: f.Zone, Type: rr.Type(dns.TypeDNSKEY)}, EDNS: true,
					Class: iterate.Answer, Reply: make([]byte, 60_000)}
				if i < keys {
					e.Zone = f.Zone // the others are replies of resolvers
				}
				_, _ = random.Read(e.Reply)
				f.Exchanges = append(f.Exchanges, e)
			}
			return f
		})
		f, err := factsOf(s, "p1", x.ID)
		if err != nil {
			t.Fatal(err)
		}
		long := 0
		for _, e := range f.Exchanges {
			if len(e.Reply) == 60_000 {
				long++
			}
		}
		if got := f.Secure[0].State; got != want || long != keys%60 {
			t.Errorf("with %d long key sets, %d are stored and the answer is %s, want %d, %s", keys, long, got, keys%60, want)
		}
	}
}

// TestCheckPanics checks that a check that panics on facts does not end the server.
func TestCheckPanics(t *testing.T) {
	if _, x := scanFacts(t, func(*explain.Facts) *explain.Facts { return nil }); x.State != scans.Failed ||
		!strings.Contains(x.Problem, "a check failed") {
		t.Errorf("%s %q", x.State, x.Problem)
	}
}

// TestDisplace checks that a project with many scans does not displace the scans of others.
func TestDisplace(t *testing.T) {
	w := &fakeScanner{}
	s := serve(t, openStore(t, filepath.Join(t.TempDir(), "db")), w, scans.Options{KeepAll: 4})
	old := finish(t, s, begin(t, s, bob, explain.Scan, "b.test"))
	for _, name := range []string{"1.test", "2.test", "3.test", "4.test", "5.test"} {
		finish(t, s, begin(t, s, alice, explain.Scan, name))
	}
	if _, _, err := s.Get("p2", old.ID); err != nil {
		t.Error("the scan of another project was displaced:", err)
	}
	if got := s.List("p1", scans.Filter{}); len(got) != 3 || got[0].Name.String() != "5.test." {
		t.Errorf("%d scans are kept, the first of %s", len(got), got[0].Name)
	}
}
