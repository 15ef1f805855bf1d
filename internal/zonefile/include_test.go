package zonefile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// TestIncludeStaysInside tries every path out of the zone file's folder, through os.Root as the command line does.
func TestIncludeStaysInside(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "zones")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("secret", "secret A 192.0.2.66\n")
	write("zones/good", "good A 192.0.2.1\n")
	write("zones/sub/up", "$INCLUDE ../good\n")
	write("zones/sub/out", "$INCLUDE ../../secret\n")
	for link, target := range map[string]string{
		"inside": "good", "outside": "../secret", "absolute": filepath.Join(top, "secret"), "updir": "..",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	o := zonefile.Options{File: "zone", Origin: dnsname.MustParse("example.org."), DefaultTTL: 60, Include: root.FS()}

	const hint = " (files below the zone file's folder can be included)"
	tests := []struct{ file, want string }{
		{"good", ""}, {"./good", ""}, {"sub/up", ""}, {"inside", ""}, {"sub/../good", ""},
		{"../secret", `zone:1:10: $INCLUDE of "../secret" leaves the zone file's folder (copy the file there)`},
		{"sub/../../secret", `zone:1:10: $INCLUDE of "sub/../../secret" leaves the zone file's folder (copy the file there)`},
		{"sub/out", `sub/out:1:10: $INCLUDE of "../../secret" leaves the zone file's folder (copy the file there)`},
		{"/etc/passwd", `zone:1:10: $INCLUDE of "/etc/passwd" leaves the zone file's folder (copy the file there)`},
		{`"/etc/passwd"`, `zone:1:10: $INCLUDE of "/etc/passwd" leaves the zone file's folder (copy the file there)`},
		{"outside", `zone:1:10: cannot include "outside": path escapes from parent` + hint},
		{"absolute", `zone:1:10: cannot include "absolute": path escapes from parent` + hint},
		{"updir/secret", `zone:1:10: cannot include "updir/secret": path escapes from parent` + hint},
		{"missing", `zone:1:10: cannot include "missing": no such file or directory` + hint},
		{"sub", `zone:1:10: cannot include "sub": not a regular file` + hint},
		{"pipe", `zone:1:10: cannot include "pipe": not a regular file` + hint},
	}
	for _, tt := range tests {
		got, err := list(strings.NewReader("$INCLUDE "+tt.file+"\n"), o)
		if tt.want == "" && (err != nil || !strings.HasSuffix(got, "good.example.org. 60 A 192.0.2.1\n")) {
			t.Errorf("$INCLUDE %s = %q, %v, want the good record", tt.file, got, err)
		}
		if tt.want != "" && (err == nil || err.Error() != tt.want) {
			t.Errorf("$INCLUDE %s =\n %q, %v, want\n %s", tt.file, got, err, tt.want)
		}
	}
	// The library opens this file through the operating system, whatever file system it was given.
	_, err = list(strings.NewReader("$GENERATE 0-0 $$INCLUDE "+filepath.Join(top, "secret")+"\n"), o)
	if err == nil || !strings.Contains(err.Error(), "unknown record type") {
		t.Errorf("$GENERATE of $INCLUDE = %v, want an unknown record type", err)
	}
}

func TestIncludeBounds(t *testing.T) {
	fsys := fstest.MapFS{
		"self": {Data: []byte("$INCLUDE self\n")},
		"a":    {Data: []byte("$INCLUDE b\n")},
		"b":    {Data: []byte("\n$INCLUDE a\n")},
		"leaf": {Data: []byte("leaf A 192.0.2.1\n")},
		"bad":  {Data: []byte("\n\nx BOGUS\n")},
		"many": {Data: []byte(strings.Repeat("$INCLUDE leaf\n", 4097))},
	}
	for i := range 9 {
		fsys[fmt.Sprintf("d%d", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "$INCLUDE d%d\n", i+1)}
	}
	o := zonefile.Options{File: "/zones/zone", Origin: dnsname.MustParse("example.org."), DefaultTTL: 60, Include: fsys}
	tests := []struct{ in, want string }{
		{"$INCLUDE self", `/zones/self:1:10: "self" includes itself`},
		{"$INCLUDE zone", `/zones/zone:1:10: "zone" includes itself`},
		{"$INCLUDE a", `/zones/b:2:10: "a" includes itself`},
		{"$INCLUDE d0", `/zones/d6:1:10: $INCLUDE is nested more than 8 files deep`},
		{"$INCLUDE many", `/zones/many:4096:10: more than 4096 files are included`},
		{"$INCLUDE leaf a b", `/zones/zone:1:17: unexpected "b" after $INCLUDE`},
		{"$INCLUDE leaf a..b", `/zones/zone:1:15: name has an empty label: "a..b"`},
		{"$INCLUDE bad",
			`/zones/bad:3:3: unknown record type "BOGUS" (a type without a name is written TYPE and its number, its data \# ` +
				`and hexadecimal)`},
	}
	for _, tt := range tests {
		if _, err := list(strings.NewReader(tt.in), o); err == nil || err.Error() != tt.want {
			t.Errorf("Parse(%q) =\n %v, want\n %s", tt.in, err, tt.want)
		}
	}
}
