package match_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/match"
)

func build(t testing.TB, patterns ...string) *match.Tree[string] {
	t.Helper()
	tree := &match.Tree[string]{}
	for _, p := range patterns {
		parsed, err := enforce.ParsePattern(p, enforce.PatternOptions{Deep: true})
		if err != nil {
			t.Fatal(err)
		}
		tree.Add(parsed, parsed.String())
	}
	return tree
}

func TestAppend(t *testing.T) {
	tree := build(t, "example.com", "www.example.com", "*.example.com", "**.example.com", "*.a.example.com",
		"bücher.example", "*.example.net", "*.example.net.")
	tests := []struct {
		name string
		want []string
	}{
		{"example.com.", []string{"example.com."}},
		{"www.example.com.", []string{"**.example.com.", "*.example.com.", "www.example.com."}},
		{"WwW.eXample.COM.", []string{"**.example.com.", "*.example.com.", "www.example.com."}},
		{"www.example.com", []string{"**.example.com.", "*.example.com.", "www.example.com."}},
		{"b.example.com.", []string{"**.example.com.", "*.example.com."}},
		{"b.a.example.com.", []string{"**.example.com.", "*.a.example.com."}},
		{"c.b.a.example.com.", []string{"**.example.com."}},
		{"_b.example.com.", []string{"**.example.com.", "*.example.com."}},
		{"*.example.com.", []string{"**.example.com.", "*.example.com."}},
		{`w\119w.example.com.`, []string{"**.example.com.", "*.example.com.", "www.example.com."}},
		{`a\.b.example.net.`, []string{"*.example.net.", "*.example.net."}},
		{"a.b.example.net.", nil},
		{"xn--bcher-kva.example.", []string{"xn--bcher-kva.example."}},
		{"example.net.", nil},
		{"com.", nil},
		{".", nil},
		{"", nil},
		{"example..com.", nil},
		{".example.com.", nil},
		{`example.com\`, nil},
		{`\256.example.com.`, nil},
		{`\25x.example.com.`, nil},
		{strings.Repeat("a", 63) + ".example.net.", []string{"*.example.net.", "*.example.net."}},
		{strings.Repeat("a", 64) + ".example.net.", nil},
		{strings.Repeat("a.", 121) + "example.com.", []string{"**.example.com."}}, // 255 bytes on the wire
		{strings.Repeat("a.", 121) + "aa.example.com.", nil},
		{strings.Repeat(".", 300), nil},
	}
	for _, tt := range tests {
		got := tree.Append(nil, tt.name)
		slices.Sort(got)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Append(%q) (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestEmpty(t *testing.T) {
	var none *match.Tree[int]
	if got := none.Append(nil, "example.com."); got != nil {
		t.Errorf("a nil tree matches %v", got)
	}
	if got := new(match.Tree[int]).Append(nil, "example.com."); got != nil {
		t.Errorf("an empty tree matches %v", got)
	}
}

// FuzzAppend checks that the tree finds the same values as testing each pattern.
func FuzzAppend(f *testing.F) {
	f.Add("example.com *.example.com **.example.com", "a.example.com.")
	f.Add("*.a.test b.a.test", `B\.c.A.test`)
	f.Add("**.a.test", `x.\065.test.`)
	f.Add("*.a.test", "..")
	f.Fuzz(func(t *testing.T, patterns, name string) {
		tree := &match.Tree[string]{}
		n, err := dnsname.Parse(name)
		var want []string
		for i, s := range strings.Fields(patterns) {
			p, bad := enforce.ParsePattern(s, enforce.PatternOptions{Deep: true})
			if bad != nil {
				continue
			}
			tree.Add(p, fmt.Sprint(i, p))
			if err == nil && name != "@" && p.Matches(n) {
				want = append(want, fmt.Sprint(i, p))
			}
		}
		got := tree.Append(nil, name)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q matches %q, want %q", name, got, want)
		}
	})
}
