package dnsname_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// FuzzParse checks that a parsed name survives text, wire form and key, and that IsIn holds for every name above it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{".", "www.Example.org", `a\.b.test.`, `\000\001\002\255.test.`, `*.\@.test`, "@", `\300`,
		"ü", name255} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := dnsname.Parse(s)
		if err != nil {
			if !n.IsZero() {
				t.Fatalf("Parse(%q) = %q and %v", s, n, err)
			}
			return
		}
		check(t, n)
	})
}

// FuzzFromWire checks that a name read from any bytes survives its text.
func FuzzFromWire(f *testing.F) {
	f.Add([]byte("\x03www\x07EXAMPLE\x03org\x00"))
	f.Add([]byte("\x02\xc0\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, took, err := dnsname.FromWire(b)
		if err != nil {
			return
		}
		if len(n.Wire()) != took || took > len(b) {
			t.Fatalf("FromWire(%q) = %q of %d bytes", b, n.Wire(), took)
		}
		check(t, n)
	})
}

func check(t *testing.T, n dnsname.Name) {
	t.Helper()
	if back, err := dnsname.Parse(n.String()); err != nil || back != n {
		t.Fatalf("Parse(%q) = %q, %v", n, back, err)
	}
	if back, took, err := dnsname.FromWire([]byte(n.Wire())); err != nil || back != n || took != len(n.Wire()) {
		t.Fatalf("FromWire(%q) = %q, %d, %v", n.Wire(), back, took, err)
	}
	key := n.AppendKey(nil)
	if back, ok := dnsname.FromKey(key); !ok || back != n {
		t.Fatalf("FromKey(%q) = %q, %v, want %q", key, back, ok, n)
	}
	for up := n.Parent(); !up.IsZero(); up = up.Parent() {
		if !n.IsIn(up) || up.IsIn(n) || !bytes.HasPrefix(key, up.AppendKey(nil)) || up.Compare(n) >= 0 {
			t.Fatalf("%q is not in order below %q", n, up)
		}
	}
}

// FuzzOrder checks the order of keys against a slow implementation of RFC 4034 §6.1. A key must be a prefix of
// another one exactly when its name is above the other.
func FuzzOrder(f *testing.F) {
	f.Add("a.example.", "z.example.")
	f.Add(`\000.a.`, `\001.a.`)
	f.Add(`attacker\.example.test.`, "example.test.")
	f.Add(`a\000b.test.`, `b.a.test.`)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err1 := dnsname.Parse(a)
		y, err2 := dnsname.Parse(b)
		if err1 != nil || err2 != nil {
			return
		}
		if got, want := sign(x.Compare(y)), sign(slices.CompareFunc(labels(x), labels(y), bytes.Compare)); got != want {
			t.Fatalf("%s Compare %s = %d, want %d", x, y, got, want)
		}
		if got, want := bytes.HasPrefix(x.AppendKey(nil), y.AppendKey(nil)), x.IsIn(y); got != want {
			t.Fatalf("key of %s begins with the key of %s: %v, want %v", x, y, got, want)
		}
	})
}

// labels returns the labels of n from the root down.
func labels(n dnsname.Name) [][]byte {
	var out [][]byte
	for ; !n.IsRoot(); n = n.Parent() {
		out = append(out, []byte(n.Label()))
	}
	slices.Reverse(out)
	return out
}
