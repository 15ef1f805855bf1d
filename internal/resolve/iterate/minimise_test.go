package iterate

import (
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
)

func TestNextName(t *testing.T) {
	tests := []struct {
		known, target string
		count         int
		want          string
	}{
		{".", "www.example.test.", 0, "test."},
		{"test.", "www.example.test.", 1, "example.test."},
		{"example.test.", "www.example.test.", 2, "www.example.test."},
		{"test.", "_25._tcp.mail.test.", 1, "mail.test."},
		{"mail.test.", "_25._tcp.mail.test.", 2, "_25._tcp.mail.test."},
		{"test.", "a._tcp.test.", 1, "a._tcp.test."},
		{"test.", "b.a._tcp.test.", 1, "a._tcp.test."},
		{"test.", "www.example.test.", 10, "www.example.test."},
		{"test.", "1.2.3.4.5.6.7.8.9.10.11.12.test.", 4, "11.12.test."},
	}
	for _, tt := range tests {
		if got := nextName(dnsname.MustParse(tt.known), dnsname.MustParse(tt.target), tt.count); got.String() != tt.want {
			t.Errorf("nextName(%s, %s, %d) = %s, want %s", tt.known, tt.target, tt.count, got, tt.want)
		}
	}
}

// TestNextNameEnds counts the steps to long names, such as those of ip6.arpa.
func TestNextNameEnds(t *testing.T) {
	for labels := 1; labels < 120; labels++ {
		target := dnsname.MustParse(strings.Repeat("1.", labels))
		steps := 0
		for known := dnsname.Root; known != target; steps++ {
			next := nextName(known, target, steps)
			if !next.IsIn(known) || next == known || !target.IsIn(next) {
				t.Fatalf("from %s to %s by %s", known, target, next)
			}
			known = next
		}
		if steps > maxMinimiseCount || labels >= minimiseOneLabel && steps < minimiseOneLabel {
			t.Errorf("%d labels took %d steps", labels, steps)
		}
	}
}

func TestRootHints(t *testing.T) {
	hints := RootHints()
	if len(hints) != 13 {
		t.Fatalf("%d root servers", len(hints))
	}
	for _, h := range hints {
		if len(h.Glue) != 2 || !h.Glue[0].Is4() || !h.Glue[1].Is6() {
			t.Errorf("%v has %v", h.Name, h.Glue)
		}
	}
}
