package mailtext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain/mailtext"
)

// TestCount checks that Count asks only for the records that the result depends on, and each once.
func TestCount(t *testing.T) {
	records := map[string][]string{
		"two.example":   {"x", "v=spf1 a mx -all"},
		"three.example": {"v=spf1 include:two.example exists:%{i}.example ?all"},
		"loop.example":  {"v=spf1 include:loop.example -all"},
		"none.example":  {"hello"},
	}
	seven := strings.Repeat("a ", 7)
	for _, tt := range []struct {
		record  string
		lookups int
		asked   []string
		broken  int
		unknown int
	}{
		{"v=spf1 ip4:192.0.2.1 -all", 0, nil, 0, 0},
		{"v=spf1 " + seven + "mx ptr exists:a.example -all", 10, nil, 0, 0},
		{"v=spf1 " + seven + "a a a include:two.example include:three.example -all", 12, nil, 0, 0},
		{"v=spf1 include:two.example include:TWO.example. -all", 6, []string{"two.example"}, 0, 0},
		{"v=spf1 include:three.example -all", 5, []string{"three.example", "two.example"}, 0, 0},
		{"v=spf1 redirect=two.example", 3, []string{"two.example"}, 0, 0},
		{"v=spf1 redirect=two.example -all", 0, nil, 0, 0},
		{"v=spf1 include:loop.example -all", 11, []string{"loop.example"}, 0, 0},
		{"v=spf1 include:none.example include:gone.example -all", 2, []string{"none.example", "gone.example"}, 1, 1},
		{"v=spf1 include:%{d}.example -all", 1, nil, 0, 1},
	} {
		record, err := mailtext.ParseSPF(tt.record)
		if err != nil {
			t.Fatalf("%s: %v", tt.record, err)
		}
		var asked []string
		got := mailtext.Count("example.org", record, func(domain string) ([]string, error) {
			asked = append(asked, domain)
			if texts, ok := records[domain]; ok {
				return texts, nil
			}
			return nil, mailtext.ErrUnknown
		})
		if got.Lookups != tt.lookups || !slices.Equal(asked, tt.asked) || len(got.Broken) != tt.broken ||
			len(got.Unknown) != tt.unknown {
			t.Errorf("%s: %+v after %q", tt.record, got, asked)
		}
	}
}

// TestWide checks that a tree of includes that grows at every level ends at the limit.
func TestWide(t *testing.T) {
	record, _ := mailtext.ParseSPF("v=spf1 include:a.example include:b.example")
	asked := 0
	got := mailtext.Count("example.org", record, func(domain string) ([]string, error) {
		asked++
		return []string{fmt.Sprintf("v=spf1 include:a%s include:b%[1]s", domain)}, nil
	})
	if got.Lookups <= mailtext.MaxLookups || asked > mailtext.MaxLookups {
		t.Errorf("%d lookups after %d questions", got.Lookups, asked)
	}
}

// FuzzTexts checks that no text of a server makes a parser panic.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{"v=spf1 a:%{d}/24//64 +all", "v=spf1 ", "v=DMARC1; p=none;", "v=DKIM1; k=ed25519; p=aGk=",
		"v=STSv1; id=1", "v=TLSRPTv1; rua=mailto:a@b", `"a" "b\000"`, `0 issue ";"`, "10 .", "=;=", "+"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		record, err := mailtext.ParseSPF(s)
		if err == nil {
			mailtext.Hosts(mailtext.Count(s, record, func(string) ([]string, error) { return []string{s}, nil }).Terms)
			record.OpenTo()
		}
		if mailtext.IsSPF(s) && mailtext.NearSPF(s) {
			t.Errorf("%q is an SPF record, and is not", s)
		}
		for _, v := range []string{mailtext.DMARC, mailtext.STS, mailtext.TLSRPT} {
			_, _ = mailtext.Near(s, v), mailtext.Check(s, v)
		}
		_, _ = mailtext.ParseDKIM(s)
		mailtext.Texts([]string{s})
		mailtext.Exchanger(s)
		mailtext.ParseCAA(s)
	})
}
