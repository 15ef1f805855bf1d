package explain_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
	"github.com/nameplane/nameplane/internal/rr"
)

// again adds different data that the server gave to a repeated query.
func again(a explain.Answer, data ...string) explain.Answer {
	a.Others = append(a.Others, []explain.Set{set(www, rr.TypeA, 300, data...)})
	return a
}

func from(a explain.Answer, subnet string) explain.Answer {
	a.Subnet = netip.MustParsePrefix(subnet)
	return a
}

func classed(a explain.Answer, c iterate.Class) explain.Answer {
	a.Class, a.Sets = c, nil
	return a
}

func typed(a explain.Answer, t rr.Type) explain.Answer {
	a.Question.Type, a.Sets[0].Type = t, t
	return a
}

func TestDifferences(t *testing.T) {
	const one, two = "192.0.2.1", "192.0.2.2"
	tests := []struct {
		name    string
		answers []explain.Answer
		want    string
	}{
		{"the same", []explain.Answer{answer(one, 42, "a"), answer(two, 42, "a")}, ""},
		{"others", []explain.Answer{answer(one, 42, "a"), answer(two, 41, "b")}, "divided"},
		{"others, of one version", []explain.Answer{answer(one, 42, "a"), answer(two, 42, "b")}, "computed"},
		{"others, of versions that are not known", []explain.Answer{answer(one, 0, "a"), answer(two, 0, "b")}, "divided"},
		{"other texts, of one version",
			[]explain.Answer{typed(answer(one, 42, "a"), rr.TypeTXT), typed(answer(two, 42, "b"), rr.TypeTXT)}, "divided"},
		{"a part, of one version", []explain.Answer{answer(one, 42, "a"), answer(two, 42, "a", "b")}, "computed"},
		{"a part, of another version", []explain.Answer{answer(one, 42, "a"), answer(two, 41, "a", "b")}, "divided"},
		{"a part, of versions that are not known", []explain.Answer{answer(one, 0, "a"), answer(two, 0, "a", "b")},
			"divided"},
		{"none at one", []explain.Answer{answer(one, 42, "a"), classed(answer(two, 42), iterate.NXDomain)}, "divided"},
		{"none of the type at one", []explain.Answer{answer(one, 42, "a"), classed(answer(two, 42), iterate.NoData)},
			"divided"},
		{"a denial without SOA at one",
			[]explain.Answer{classed(answer(one, 42), iterate.NXDomain), classed(answer(two, 42), iterate.NoSOA)}, ""},
		{"denials of the type without SOA at one",
			[]explain.Answer{classed(answer(one, 42), iterate.NoSOA), classed(answer(two, 42), iterate.NoData)}, ""},
		{"a denial without SOA at one, and an answer",
			[]explain.Answer{answer(one, 42, "a"), classed(answer(two, 42), iterate.NoSOA)}, "divided"},
		{"no reply of one", []explain.Answer{answer(one, 42, "a"), classed(answer(two, 0), iterate.Timeout)}, ""},
		{"refused by one", []explain.Answer{answer(one, 42, "a"), classed(answer(two, 0), iterate.LameRefused)}, ""},
		{"rotating", []explain.Answer{again(answer(one, 42, "a"), "b"), again(answer(two, 42, "b"), "a")}, "rotating"},
		{"rotating, one seen once", []explain.Answer{again(answer(one, 42, "a"), "b"), answer(two, 42, "b")}, "rotating"},
		{"rotating, and one with other data", []explain.Answer{again(answer(one, 42, "a"), "b"), answer(two, 41, "c")},
			"rotating divided"},
		{"rotating, and one denies",
			[]explain.Answer{again(answer(one, 42, "a"), "b"), classed(answer(two, 41), iterate.NXDomain)}, "rotating divided"},
		{"by network", []explain.Answer{from(answer(one, 42, "a"), "192.0.2.0/24"),
			from(answer(one, 42, "b"), "198.51.100.0/24")}, "by place"},
		{"by network, and servers differ",
			[]explain.Answer{answer(one, 42, "a"), answer(two, 42, "b"), from(answer(one, 42, "b"), "198.51.100.0/24")},
			"by place"},
		{"the same for all networks", []explain.Answer{answer(one, 42, "a"), from(answer(one, 42, "a"), "198.51.100.0/24")},
			""},
		{"by network and rotating",
			[]explain.Answer{again(answer(one, 42, "a"), "b"), from(answer(one, 42, "b"), "198.51.100.0/24")}, "rotating"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, d := range explain.Differences(&explain.Facts{Answers: tt.answers}) {
				got = append(got, string(d.Manner))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("Differences = %q, want %q", got, tt.want)
			}
		})
	}
}
