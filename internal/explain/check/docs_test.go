package check_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/test/reference"
)

var update = flag.Bool("update", false, "rewrite docs/reference/checks.md")

const page = "../../../docs/reference/checks.md"

const intro = `# Checks

` + "`nameplane scan`, `analyze`, `compare` and `service`" + ` run these checks.
` + "`nameplane checks ID`" + ` prints the same texts.
This page is generated from them by ` + "`go test ./internal/explain/check -update`" + `.

Every check has one of three results: it **passes**, it **fails**, or it is **unknown**.
A result is unknown if a query that the check needs was not sent, not answered, or not finished within the budget.
Unknown never counts as a failure.
A check that does not apply, such as a DNSSEC check for an unsigned zone, is not shown.
Answers that differ on purpose are never called old: by client network, by rotation, or because a resolver filters.
A server that does not reply is never called lame.

The severity is the worst that a check can have; the severity of a finding depends on what was found.

| severity | meaning |
|---|---|
| critical | users cannot reach the name now |
| error | some users cannot reach the name, or it will break |
| warning | it should be fixed |
| notice | it is worth knowing |
| info | it is not a fault |
`

// document returns the catalogue as a Markdown page.
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
		items := [][2]string{{"When it fails", c.What + " " + c.Why}, {"How it is determined", c.How}, {"What to do", c.Fix}}
		if len(c.Refs) > 0 {
			items = append(items, [2]string{"See", strings.Join(c.Refs, ", ")})
		}
		for _, item := range items {
			b.WriteString(reference.Prose("* "+item[0]+": ", "  ", item[1]))
		}
	}
	return b.String()
}

// TestPage checks that docs/reference/checks.md matches the catalogue.
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
		t.Errorf("docs/reference/checks.md is not what the catalogue says; go test -update writes it (-want +got):\n%s", diff)
	}
}
