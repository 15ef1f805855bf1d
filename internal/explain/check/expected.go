package check

import (
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// asExpected is check NAM20: it compares the records that the user expects with those of the authority, type by type.
func asExpected(f *explain.Facts) (out []explain.Finding) {
	// --expect may be repeated for one type. The values together are the expected set, because DNS changes sets and not
	// records.
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
		// The actor of all findings is the DNS host: an answer that the owner did not expect is a change that did not arrive
		// there.
		subject := text(f.Name) + " " + o.Type.String()
		var have []string
		for _, s := range o.Sets {
			if s.Type == o.Type {
				have = append(have, s.Data...)
			}
		}
		switch {
		// Unknown comes first: without an answer, "does not exist" would be wrong.
		case o.Result == iterate.Unknown:
			out = append(out, unknown(subject, "The records of %s could not be determined.", subject)...)
		case sameTexts(have, data):
			out = append(out, pass(subject, "%s is as expected.", subject)...)
		case len(have) == 0:
			out = append(out, fail("", explain.DNSHost, subject, "%s does not exist, but %s is expected.", subject,
				words.Some(data)))
		default:
			out = append(out, fail("", explain.DNSHost, subject, "%s is %s, but %s is expected.", subject, words.Some(have),
				words.Some(data)))
		}
	}
	return out
}

// sameTexts compares record data as users write it: in any order and case, with or without quotes and final dots.
func sameTexts(a, b []string) bool {
	normal := func(all []string) []string {
		out := words.Each(all, func(s string) string {
			return strings.ToLower(strings.TrimSuffix(strings.Trim(s, `"`), "."))
		})
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(normal(a), normal(b))
}
