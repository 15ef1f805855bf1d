package scans

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
)

// Change is a difference between two scans.
type Change struct {
	What   string `json:"what"` // "nameservers", "www.example.org A", "registrar"
	Before string `json:"before"`
	After  string `json:"after"`
}

// Diff returns the changes from one scan of a name to a later one. A value that is missing in one of them is not a
// change.
func Diff(before, after *explain.Facts) []Change {
	return changes(explain.PastOf(before), explain.PastOf(after))
}

func changes(a, b explain.Past) (out []Change) {
	add := func(what, x, y string) {
		if x != y && x != "" && y != "" {
			out = append(out, Change{what, x, y})
		}
	}
	add("nameservers", names(a.NS), names(b.NS))
	if a.Serial != 0 && b.Serial != 0 {
		add("serial", fmt.Sprint(a.Serial), fmt.Sprint(b.Serial))
	}
	add("registrar", a.Registrar, b.Registrar)
	if !a.Expires.IsZero() && !b.Expires.IsZero() {
		add("expires", a.Expires.UTC().Format("2006-01-02"), b.Expires.UTC().Format("2006-01-02"))
	}
	before2, after2 := texts(a), texts(b)
	// A set that only one of them has is not a change, so the keys of one are enough.
	for _, key := range slices.Sorted(maps.Keys(before2)) {
		add(key, before2[key], after2[key])
	}
	return out
}

func names(all []dnsname.Name) string {
	var out []string
	for _, n := range all {
		out = append(out, n.String())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// texts returns the records that a scan found, and those that it found to be absent.
func texts(p explain.Past) map[string]string {
	out := map[string]string{}
	for _, s := range p.Sets {
		out[fmt.Sprintf("%s %s", s.Name, s.Type)] = fmt.Sprintf("%d %s", s.TTL, strings.Join(s.Data, ", "))
	}
	for _, t := range p.Absent {
		out[fmt.Sprintf("%s %s", p.Name, t)] = "does not exist"
	}
	return out
}
