package dnsname_test

import (
	"bytes"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// TestCanonicalOrder checks the example of RFC 4034 §6.1, and the bytes that keys escape.
func TestCanonicalOrder(t *testing.T) {
	order := []string{
		".", "example.", "a.example.", "yljkjljk.a.example.", "Z.a.example.", "zABC.a.EXAMPLE.", "z.example.",
		`\001.z.example.`, "*.z.example.", `\200.z.example.`,
		"zz.example.", `zz\000.example.`, `zz\000\000.example.`, `zz\000\001.example.`, `zz\001.example.`, `zz\002.example.`,
		"zza.example.", "examplf.",
	}
	for i, a := range order {
		for j, b := range order {
			x, y := dnsname.MustParse(a), dnsname.MustParse(b)
			if got, want := sign(x.Compare(y)), sign(i-j); got != want {
				t.Errorf("%s Compare %s = %d, want %d", x, y, got, want)
			}
			prefix := bytes.HasPrefix(y.AppendKey(nil), x.AppendKey(nil))
			if prefix != y.IsIn(x) {
				t.Errorf("key of %s is a prefix of the key of %s: %v, want %v", x, y, prefix, y.IsIn(x))
			}
		}
		n := dnsname.MustParse(a)
		if back, ok := dnsname.FromKey(n.AppendKey(nil)); !ok || back != n {
			t.Errorf("FromKey(key of %s) = %s, %v", n, back, ok)
		}
	}
}

func TestFromKeyRefuses(t *testing.T) {
	long := append(bytes.Repeat([]byte("a"), 64), 0)
	deep := bytes.Repeat([]byte("a\x00"), 128)
	for _, key := range [][]byte{[]byte("a"), {0}, []byte("a\x00\x00"), {1}, {1, 0, 0}, {1, 3, 0}, []byte("A\x00"),
		long, deep} {
		if n, ok := dnsname.FromKey(key); ok {
			t.Errorf("FromKey(%q) = %s, want none", key, n)
		}
	}
	if n, ok := dnsname.FromKey(nil); !ok || !n.IsRoot() {
		t.Errorf("FromKey(empty) = %q, %v, want the root", n, ok)
	}
}

func sign(n int) int { return min(1, max(-1, n)) }
