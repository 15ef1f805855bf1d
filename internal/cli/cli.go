// Package cli has what the command lines of all programs share: groups of commands, exit statuses, errors with a hint,
// and output for people and for programs.
//
// Start with NewRoot and Main in cli.go. failure.go has errors and exit statuses, output.go tables and JSON, and
// progress.go the progress bar.
package cli

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// NewRoot returns the root command of a program. Main prints its errors, not the cobra library.
func NewRoot(use, short, long, example string) *cobra.Command {
	root := NewGroup(use, short, long, example)
	root.SilenceErrors, root.SilenceUsage = true, true
	// A group runs only to report that a command is missing, so its usage line shows only its commands. This is not a
	// usage template: with text/template, which calls methods by name, the linker would keep every method of the program.
	usage := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		if c.HasAvailableSubCommands() {
			defer func(run func(*cobra.Command, []string) error) { c.RunE = run }(c.RunE)
			c.RunE = nil
		}
		return usage(c)
	})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return Usage(c, "%s", err)
	})
	return root
}

// Main runs a program and returns its exit status. The first interrupt cancels the context of the command, the second
// one ends the process.
func Main(root *cobra.Command, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root.SetArgs(args)
	return Report(os.Stderr, root.Name(), root.ExecuteContext(ctx))
}

// NewGroup returns a command that only groups others. Without a subcommand it fails. The library would print the help
// and exit with 0, so a script with an empty variable would continue.
func NewGroup(use, short, long, example string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usage(c, "a command is missing: %s", strings.Join(subcommands(c), ", "))
		}
		suggestions := c.SuggestionsFor(args[0])
		if len(suggestions) == 0 {
			suggestions = subcommands(c)
		}
		return Usage(c, "%q is not a command of %s; did you mean %s?", args[0], c.CommandPath(),
			strings.Join(suggestions, ", "))
	}
	return c
}

// subcommands returns the names of the available subcommands.
func subcommands(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// Args accepts at least minimum and at most maximum arguments. A negative maximum is no limit.
// Its errors quote the usage line.
func Args(minimum, maximum int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < minimum {
			return Usage(c, "too few arguments: %s", c.UseLine())
		}
		if maximum >= 0 && len(args) > maximum {
			return Usage(c, "unexpected argument %q: %s", args[maximum], c.UseLine())
		}
		return nil
	}
}
