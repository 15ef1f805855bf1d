package dnsname_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/dnsname"
)

var (
	label63 = strings.Repeat("a", 63)
	// name255 has 255 bytes in wire form: three labels of 63 bytes, one of 61, their lengths and the root.
	name255 = label63 + "." + label63 + "." + label63 + "." + strings.Repeat("b", 61) + "."
)

func TestParse(t *testing.T) {
	tests := []struct{ in, want string }{
		{".", "."},
		{"example.org", "example.org."},
		{"WWW.Example.ORG.", "www.example.org."},
		{`a\.b.test.`, `a\.b.test.`},
		{`\097.test.`, "a.test."},
		{`\065.test.`, "a.test."}, // an escaped A is still a letter
		{`\000\255\032.test.`, `\000\255\032.test.`},
		{`\"\;\(\)\@\$\\.test.`, `\"\;\(\)\@\$\\.test.`},
		{"ü.test.", `\195\188.test.`},
		{"*.test.", "*.test."},
		{"@.test.", `\@.test.`},
		{"@", `\@.`},
		{label63 + ".", label63 + "."},
		{name255, name255},
	}
	for _, tt := range tests {
		n, err := dnsname.Parse(tt.in)
		if err != nil || n.String() != tt.want {
			t.Errorf("Parse(%q) = %q, %v, want %q", tt.in, n, err, tt.want)
			continue
		}
		if back, err := dnsname.Parse(n.String()); err != nil || back != n {
			t.Errorf("Parse(%q) = %q, %v, want the same name again", n, back, err)
		}
		if back, took, err := dnsname.FromWire([]byte(n.Wire() + "rest")); err != nil || back != n || took != len(n.Wire()) {
			t.Errorf("FromWire(%q) = %q, %d, %v", n.Wire(), back, took, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "name is empty"},
		{"..", "name has an empty label"},
		{".test.", "name has an empty label"},
		{"a..test.", "name has an empty label"},
		{label63 + "a.", "name has a label of more than 63 bytes"},
		{"a" + name255[1:62] + "aaa" + name255[63:], "name has a label of more than 63 bytes"},
		{strings.Replace(name255, ".b", ".bb", 1), "name is longer than 255 bytes"},
		{strings.Repeat("a.", 128), "name is longer than 255 bytes"},
		{`a\`, "name has a broken escape"},
		{`\25.test.`, "name has a broken escape"},
		{`\256.test.`, "name has a broken escape"},
		{`\1a2.test.`, "name has a broken escape"},
	}
	for _, tt := range tests {
		n, err := dnsname.Parse(tt.in)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || !n.IsZero() {
			t.Errorf("Parse(%q) = %q, %v, want %q", tt.in, n, err, tt.want)
		}
	}
}

func TestParseIn(t *testing.T) {
	origin := dnsname.MustParse("example.org.")
	tests := []struct{ in, want string }{
		{"@", "example.org."}, {"www", "www.example.org."}, {"www.", "www."}, {"a.b", "a.b.example.org."},
		{`\@`, `\@.example.org.`}, {".", "."}, {`a\.`, `a\..example.org.`},
	}
	for _, tt := range tests {
		if n, err := dnsname.ParseIn(tt.in, origin); err != nil || n.String() != tt.want {
			t.Errorf("ParseIn(%q) = %q, %v, want %q", tt.in, n, err, tt.want)
		}
	}
	if n, err := dnsname.ParseIn("www", dnsname.MustParse(name255)); err == nil {
		t.Errorf("ParseIn(www) under a name of 255 bytes = %q", n)
	}
	for _, in := range []string{"www", "@"} {
		if n, err := dnsname.ParseIn(in, dnsname.Name{}); err == nil {
			t.Errorf("ParseIn(%q) without an origin = %q, want an error", in, n.Wire())
		}
	}
}

func TestFromWireRefuses(t *testing.T) {
	for _, in := range []string{
		"", "\x01", "\x01a", "\x03ab\x00", "\xc0\x00", "\x40" + strings.Repeat("a", 64) + "\x00",
		strings.Repeat("\x01a", 127) + "\x01a\x00",
	} {
		if n, _, err := dnsname.FromWire([]byte(in)); err == nil {
			t.Errorf("FromWire(%q) = %q, want an error", in, n)
		}
	}
	if n, _, err := dnsname.FromWire([]byte("\x03WwW\x00")); err != nil || n.String() != "www." {
		t.Errorf("FromWire keeps case: %q, %v", n, err)
	}
}

func TestIsIn(t *testing.T) {
	tests := []struct {
		name, zone string
		want       bool
	}{
		{"example.test.", "example.test.", true},
		{"www.example.test.", "example.test.", true},
		{"a.b.example.test.", "example.test.", true},
		{"EXAMPLE.test.", "example.TEST.", true},
		{"example.test.", ".", true},
		{".", ".", true},
		{"test.", "example.test.", false},
		{"xexample.test.", "example.test.", false},
		{`attacker\.example.test.`, "example.test.", false}, // one label that ends in .example
		{`attacker\007example.test.`, "example.test.", false},
		{`x\007example\004test.`, "example.test.", false}, // a label that contains the zone's wire form
		{"example.org.", "example.test.", false},
	}
	for _, tt := range tests {
		n, z := dnsname.MustParse(tt.name), dnsname.MustParse(tt.zone)
		if got := n.IsIn(z); got != tt.want {
			t.Errorf("%s IsIn(%s) = %v, want %v", n, z, got, tt.want)
		}
		if tt.want && dnsname.FromCanonical(n.In(z)+z.Wire()) != n {
			t.Errorf("%s In(%s) = %q", n, z, n.In(z))
		}
	}
	if dnsname.MustParse("a.test.").IsIn(dnsname.Name{}) {
		t.Error("a name is in the zero Name")
	}
}

func TestParts(t *testing.T) {
	n := dnsname.MustParse(`*.a\.b.test.`)
	if !n.IsWildcard() || n.NumLabels() != 3 || n.Label() != "*" || n.Parent().String() != `a\.b.test.` ||
		n.Parent().Label() != "a.b" {
		t.Errorf("parts of %s: wildcard %v, %d labels, label %q, parent %s", n, n.IsWildcard(), n.NumLabels(), n.Label(),
			n.Parent())
	}
	for _, s := range []string{"**.test.", "a.*.test.", "x*.test.", "."} {
		if dnsname.MustParse(s).IsWildcard() {
			t.Errorf("%s is a wildcard", s)
		}
	}
	if r := dnsname.Root; !r.IsRoot() || r.NumLabels() != 0 || r.Label() != "" || !r.Parent().IsZero() || r.IsZero() {
		t.Errorf("root: %q", r.Wire())
	}
	if z := (dnsname.Name{}); z.String() != "" || z.NumLabels() != 0 || !z.Parent().IsZero() {
		t.Errorf("zero Name: %q", z)
	}
}

func TestChild(t *testing.T) {
	org := dnsname.MustParse("example.org.")
	if n, err := org.Child("A.b"); err != nil || n != dnsname.MustParse(`a\.b.example.org.`) {
		t.Errorf("Child(A.b) = %s, %v", n, err)
	}
	if n, err := org.Child(label63); err != nil || n.Parent() != org {
		t.Errorf("Child of 63 bytes = %s, %v", n, err)
	}
	for _, label := range []string{"", label63 + "a"} {
		if n, err := org.Child(label); err == nil {
			t.Errorf("Child(%q) = %s, want an error", label, n)
		}
	}
	if n, err := dnsname.MustParse(name255).Child("a"); err == nil {
		t.Errorf("child of a name of 255 bytes = %s", n)
	}
}

func TestJSON(t *testing.T) {
	type doc struct {
		Name dnsname.Name   `json:"name"`
		None dnsname.Name   `json:"none"`
		Left dnsname.Name   `json:"left,omitzero"`
		List []dnsname.Name `json:"list"`
	}
	in := doc{Name: dnsname.MustParse(`a\.b.Example.org`), List: []dnsname.Name{dnsname.Root}}
	const want = `{"name":"a\\.b.example.org.","none":"","list":["."]}`
	text, err := json.Marshal(in)
	if err != nil || string(text) != want {
		t.Fatalf("Marshal = %s, %v, want %s", text, err, want)
	}
	var out doc
	if err := json.Unmarshal(text, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("Unmarshal = %v, %v, want %v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"name":"a..b"}`), &out); err == nil {
		t.Error("a name with an empty label is read")
	}
}
