package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// asExpected holds what the asker says there should be against what the authority has, type by type.
func asExpected(f *explain.Facts) (out []explain.Finding) {
	want := map[rr.Type][]string{}
	for _, s := range f.Expect {
		if s.Name == f.Name {
			want[s.Type] = append(want[s.Type], s.Data...)
		}
	}
	for _, o := range f.Outcomes {
		data, ok := want[o.Type]
		if !ok {
			continue
		}
		subject := text(f.Name) + " " + o.Type.String()
		var is []string
		for _, s := range o.Sets {
			if s.Type == o.Type {
				is = append(is, s.Data...)
			}
		}
		switch {
		case o.Result == iterate.Unknown:
			out = append(out, unknown(subject, "What %s is could not be found out.", subject)...)
		case sameTexts(is, data):
			out = append(out, pass(subject, "%s is as expected.", subject)...)
		case len(is) == 0:
			out = append(out, fail("", explain.DNSHost, subject, "%s does not exist, and %s is expected.", subject, words.Some(data)))
		default:
			out = append(out, fail("", explain.DNSHost, subject, "%s is %s, and %s is expected.", subject, words.Some(is), words.Some(data)))
		}
	}
	return out
}

// sameTexts compares data as people write it: names with or without their last dot, in any case and order.
func sameTexts(a, b []string) bool {
	normal := func(all []string) []string {
		out := words.Each(all, func(s string) string { return strings.ToLower(strings.TrimSuffix(strings.Trim(s, `"`), ".")) })
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(normal(a), normal(b))
}
