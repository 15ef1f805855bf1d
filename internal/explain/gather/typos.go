package gather

import (
	"slices"
	"strings"
)

// commonLabels are labels that many zones have, the most common first.
var commonLabels = strings.Fields(`www mail web smtp imap pop ftp api app webmail blog shop dev test staging admin cdn
	static assets img images media docs help support status portal login auth sso vpn remote autodiscover autoconfig mx
	ns1 ns2 git wiki mobile news forum my secure beta demo home cloud files download store search video account accounts
	dashboard gateway`)

// commonTLDs are top-level domains that people often mean, the most common first.
var commonTLDs = strings.Fields(
	"com net org info biz io de uk fr nl eu ch it es se no dk pl at be cz ru us ca br au jp cn in dev app")

// distance returns how many letters must be inserted, deleted, changed or swapped with the next one to turn a into b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(row[j], last[j+1], last[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// maxLabel bounds the cost of distance.
const maxLabel = 63

// isTypo reports whether one label is likely a mistyped form of the other: one edit, or two in longer labels. Labels
// that differ only in a number are different things, such as ns1 and ns2.
func isTypo(a, b string) bool {
	const digits = "0123456789"
	if a == b || len(a) > maxLabel || len(b) > maxLabel {
		return false
	}
	if p, q := strings.TrimRight(a, digits), strings.TrimRight(b, digits); p == q && p != a && q != b {
		return false
	}
	most := 1
	if min(len(a), len(b)) > 4 {
		most = 2
	}
	return min(len(a), len(b)) > 1 && distance(a, b) <= most
}

// synonyms are labels that mean the same in different zones.
var synonyms = map[string]string{"www": "web", "web": "www"}

// similarLabels returns at most so many common labels that are similar to label, the most similar first.
func similarLabels(label string, most int) []string {
	out := slices.DeleteFunc(slices.Clone(commonLabels), func(u string) bool { return !isTypo(label, u) })
	slices.SortStableFunc(out, func(a, b string) int { return distance(label, a) - distance(label, b) })
	if p, ok := synonyms[label]; ok {
		out = slices.Insert(out, 0, p)
	}
	return out[:min(most, len(out))]
}

// similarTLDs returns top-level domains that are one edit away.
func similarTLDs(label string) []string {
	return slices.DeleteFunc(slices.Clone(commonTLDs), func(t string) bool {
		return len(label) >= maxLabel || distance(label, t) != 1 || len(t) <= 2 && len(label) <= 2
	})
}

// typos are corrections of a label, derived from the label alone.
type typos struct {
	likely  []string // visible in the label: a doubled letter, www without its dot, a digit for a letter
	swapped []string // two adjacent letters swapped, the most likely first
}

func typosOf(label string) (out typos) {
	add := func(to *[]string, s string) {
		if s = strings.Trim(s, "-"); len(s) > 1 && s != label && !slices.Contains(out.likely, s) && !slices.Contains(*to, s) {
			*to = append(*to, s)
		}
	}
	if strings.HasPrefix(label, "xn--") || len(label) > maxLabel {
		return out
	}
	if rest, ok := strings.CutPrefix(label, "www"); ok {
		add(&out.likely, rest)
	}
	for i := 1; i < len(label); i++ {
		if label[i] == label[i-1] {
			add(&out.likely, label[:i]+label[i+1:])
		}
	}
	if strings.ContainsFunc(label, func(r rune) bool { return 'a' <= r && r <= 'z' }) {
		add(&out.likely, strings.NewReplacer("0", "o", "1", "l", "3", "e", "5", "s").Replace(label))
	}
	for i := 1; i+1 < len(label); i++ { // the first letter is rarely wrong
		if vowel(label[i]) != vowel(label[i+1]) {
			b := []byte(label)
			b[i], b[i+1] = b[i+1], b[i]
			add(&out.swapped, string(b))
		}
	}
	slices.SortStableFunc(out.swapped, func(a, b string) int { return alternations(b) - alternations(a) })
	return out
}

func vowel(c byte) bool { return strings.IndexByte("aeiouy", c) >= 0 }

// alternations counts the changes between consonants and vowels: words have many.
func alternations(s string) (n int) {
	for i := 1; i < len(s); i++ {
		if vowel(s[i]) != vowel(s[i-1]) {
			n++
		}
	}
	return n
}
