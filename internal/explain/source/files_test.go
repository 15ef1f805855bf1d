package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/resolve/secure"
)

func TestReadAnchors(t *testing.T) {
	const key = ". 172800 IN DNSKEY 257 3 13 " +
		"mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ=="
	for text, want := range map[string]string{
		". DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n\n; old ones\n" + key +
			" ; new\n": "",
		". NS a.example.org.\n": ":1: ",
		"\nnot a record\n":      ":2: ",
	} {
		file := filepath.Join(t.TempDir(), "anchors")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readAnchors(file)
		switch {
		case want == "" && (err != nil || len(got) != 2 || got[0].KeyTag != 20326 || got[1].Algorithm != 13):
			t.Errorf("%q: %+v, %v", text, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestNoAnchors checks that an empty file and the word none mean that the root is not signed.
func TestNoAnchors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "anchors")
	if err := os.WriteFile(file, []byte("; nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{file, "none"} {
		got, err := readAnchors(from)
		if err != nil || len(got) != 1 || got[0] != secure.UnsignedRoot() {
			t.Errorf("%s: %+v, %v", from, got, err)
		}
	}
}

// TestPrivateRoot checks that the keys of the public root are not used for other root servers.
func TestPrivateRoot(t *testing.T) {
	for hints, want := range map[string][]secure.Anchor{
		"a.root.example 10.0.0.1\n":          nil,
		"a.root-servers.net 198.41.0.4\n":    secure.RootAnchors(),
		". 3600000 NS x.\nx. 1 A 10.0.0.2\n": nil,
	} {
		file := filepath.Join(t.TempDir(), "hints")
		if err := os.WriteFile(file, []byte(hints), 0o600); err != nil {
			t.Fatal(err)
		}
		g, _, err := Open(Config{Hints: file})
		if err != nil || !slices.Equal(g.Anchors, want) {
			t.Errorf("%q: the anchors are %v, want %v, %v", hints, g.Anchors, want, err)
		}
	}
}
