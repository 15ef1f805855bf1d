package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadAnchors(t *testing.T) {
	const key = ". 172800 IN DNSKEY 257 3 13 " +
		"mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ=="
	for text, want := range map[string]string{
		". DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n\n; old ones\n" + key +
			" ; new\n": "",
		"; nothing\n":           "has no trust anchor",
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
