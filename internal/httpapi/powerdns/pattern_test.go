package powerdns

import (
	"regexp"
	"strings"
	"testing"
)

// FuzzPattern compares the matcher with package regexp.
func FuzzPattern(f *testing.F) {
	long := strings.Repeat("a", 80)
	for _, s := range [][2]string{{"*", ""}, {"*", "www"}, {"**a**", "bab"}, {"a?c", "abc"}, {"a?c", "ac"}, {"", ""},
		{"", "a"}, {"*.example.*", "www.Example.org"}, {"*a*b*c*", "xxaxxbxxbxx"}, {"?*?", "a"}, {"?*?", "ab"},
		{"a*a*a*b", "aaaaaaaaaa"}, {"*" + long + long + "b", long + long + long + "b"},
		{long + long + "*" + long, long + long + long}, {strings.Repeat("?", 255), long + long + long}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, glob, text string) {
		glob = strings.ToLower(glob)
		if len(glob) > maxPattern {
			return
		}
		// Both work on bytes: write each byte as one rune.
		expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(runes(glob)))
		want := regexp.MustCompile(`(?s)^(?:` + expr + `)$`).MatchString(runes(strings.ToLower(text)))
		if got := newPattern(glob).matches(text); got != want {
			t.Errorf("pattern %q, text %q: %v, want %v", glob, text, got, want)
		}
	})
}

// runes returns a text with one rune for each byte of s.
func runes(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteRune(rune(s[i]))
	}
	return b.String()
}
