package check_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain/check"
)

var update = flag.Bool("update", false, "rewrite docs/checks.md")

const page = "../../../docs/checks.md"

const intro = `# Checks

What ` + "`nameplane scan`, `nameplane analyze` and `nameplane compare`" + ` look at. ` + "`nameplane checks ID`" + ` prints the same texts; this page is
made of them by ` + "`go test ./internal/explain/check -update`" + `.

Every check ends in one of three ways: it **passes**, it **fails**, or it is **unknown**, because what is needed for it was not
asked, not answered, or not finished within the budget. Unknown is never counted as wrong. A check that does not apply, such
as one of DNSSEC for a zone that is not signed, is not shown. Answers that differ on purpose, by place, in turn, or because a resolver
filters, are never called old, and a server that does not reply is never called lame.

The severity is the worst that a check can have; which one it is depends on what was found.

| severity | meaning |
|---|---|
| critical | users cannot reach it now |
| error | some users cannot, or it will break |
| warning | it should be mended |
| notice | worth knowing |
| info | no fault |
`

// document is the catalogue as a page.
func document() string {
	var b strings.Builder
	b.WriteString(intro)
	group := ""
	for _, c := range check.All() {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(&b, "\n## %s\n", strings.ToUpper(group[:1])+group[1:])
		}
		var kinds []string
		for _, k := range c.Kinds {
			kinds = append(kinds, string(k))
		}
		fmt.Fprintf(&b, "\n### %s: %s\n\n", c.ID, c.Title)
		fmt.Fprintf(&b, "At worst %s; part of %s.\n\n", c.Severity, strings.Join(kinds, ", "))
		fmt.Fprintf(&b, "* When it fails: %s %s\n* How it is found out: %s\n* What to do: %s\n", c.What, c.Why, c.How, c.Fix)
		if len(c.Refs) > 0 {
			fmt.Fprintf(&b, "* See: %s\n", strings.Join(c.Refs, ", "))
		}
	}
	return b.String()
}

// TestPage keeps docs/checks.md true.
func TestPage(t *testing.T) {
	got := document()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/checks.md is not what the catalogue says; go test -update writes it (-want +got):\n%s", diff)
	}
}
