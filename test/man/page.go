package man

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nameplane/nameplane/test/reference"
)

// ComparePage checks that a part of a page of docs/reference has each command of a program with its flags. With update
// it writes that part.
func ComparePage(t *testing.T, root *cobra.Command, page string, update bool) {
	t.Helper()
	var b strings.Builder
	write(t, root, &b)
	reference.Compare(t, page, root.Name(), b.String(), update)
}

// write writes a command and those below it.
func write(t *testing.T, c *cobra.Command, b *strings.Builder) {
	t.Helper()
	c.InitDefaultHelpFlag()
	fmt.Fprintf(b, "### %s\n\n%s.\n\n", c.CommandPath(), c.Short)
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(b, "```text\n%s COMMAND\n```\n\n", c.CommandPath())
	} else {
		fmt.Fprintf(b, "```text\n%s\n```\n\n", c.UseLine())
	}
	for paragraph := range strings.SplitSeq(c.Long, "\n\n") {
		if strings.HasPrefix(paragraph, " ") {
			paragraph = "```text\n" + paragraph + "\n```"
		}
		b.WriteString(paragraph + "\n\n")
	}
	var rows [][]string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			rows = append(rows, flagRow(f))
		}
	})
	if rows != nil {
		b.WriteString(reference.Table([]string{"flag", "default", "meaning"}, rows) + "\n")
	}
	if c.Example != "" {
		fmt.Fprintf(b, "Examples:\n\n```text\n%s\n```\n\n", unindent(c.Example))
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			write(t, sub, b)
		}
	}
}

// flagRow leaves out defaults that say nothing: a switch that is off, and an empty list.
func flagRow(f *pflag.Flag) []string {
	value, usage := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if value != "" {
		name += " " + value
	}
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	def := f.DefValue
	if def == "[]" || def == "false" || def == "0" && value == "" {
		def = ""
	}
	return []string{reference.Code(name), reference.Code(def), reference.Text(usage)}
}

// unindent removes the two spaces that begin each line of an example.
func unindent(s string) string { return strings.TrimPrefix(strings.ReplaceAll(s, "\n  ", "\n"), "  ") }
