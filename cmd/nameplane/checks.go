package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/check"
)

// newChecksCommand reads the catalogue of this program, so the texts are those of the checks that it runs.
func newChecksCommand() *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "checks [ID]",
		Short: "Explain the checks of scan, analyze and compare",
		Long: `List the checks of scan, analyze and compare with their ids and their highest severity.

With an id, explain one check: what is wrong when it fails, why that matters, how it is
detected, and how to fix it. With a prefix of ids, such as DEL, list the checks of that
group. The command sends no queries.

With -o json the output is an array of checks, or one check.`,
		Example: `  nameplane checks
  nameplane checks DEL04
  nameplane checks SEC
  nameplane checks -o json | jq -r '.[] | select(.severity == "critical") | .id'`,
		Args: cli.Args(0, 1),
		// The shell completes ids: nobody knows more than a hundred of them by heart.
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, c := range check.All() {
				ids = append(ids, c.ID+"\t"+c.Title)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			if len(args) == 0 {
				return printChecks(w, out, check.All())
			}
			// Reports print ids in upper case; people type them in lower case.
			id := strings.ToUpper(args[0])
			if one, ok := check.Find(id); ok {
				return printCheck(w, out, one)
			}
			// An empty argument is a prefix of every id, but surely a mistake in a script.
			group := slices.DeleteFunc(check.All(), func(c check.Check) bool { return id == "" || !strings.HasPrefix(c.ID, id) })
			if len(group) == 0 {
				return cli.Fail("`nameplane checks` lists all checks", "there is no check %s", args[0])
			}
			return printChecks(w, out, group)
		},
	}
	out.AddFlag(c)
	return c
}

// printChecks leaves out the explanations: with more than a hundred checks, the table must fit into one line for each.
func printChecks(w io.Writer, f cli.Format, checks []check.Check) error {
	if f.JSON() {
		return cli.PrintJSON(w, checks)
	}
	t := cli.NewTable(w, "ID", "SEVERITY", "CHECK")
	for _, c := range checks {
		t.Row(c.ID, string(c.Severity), c.Title)
	}
	return t.Flush()
}

// printCheck prints the text of docs/reference/checks.md, which is generated from the same structure.
func printCheck(w io.Writer, f cli.Format, c check.Check) error {
	if f.JSON() {
		return cli.PrintJSON(w, c)
	}
	var kinds []string
	for _, k := range c.Kinds {
		kinds = append(kinds, string(k))
	}
	return cli.PrintPairs(w, [][2]string{
		{c.ID, c.Title}, {"severity", string(c.Severity) + " at most"}, {"group", c.Group},
		{"part of", strings.Join(kinds, ", ")},
		{"what", c.What}, {"why", c.Why}, {"how", c.How}, {"fix", c.Fix}, {"see", strings.Join(c.Refs, ", ")},
	})
}
