// Command nameplane serves DNS zones, and manages them on a running server.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run is the program but for its exit. The first interrupt ends what is going on in an orderly way, the second one at once.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRootCommand()
	root.SetArgs(args)
	return tell(os.Stderr, root.ExecuteContext(ctx))
}

const rootLong = `nameplane is a control plane for DNS names: an authoritative DNS server with a
REST API, the command line to manage it, and tools that say why a domain does not work.

scan, analyze, compare, watch, resolvers, checks and lab need no server. Start one with
"nameplane serve"; the other commands talk to it over HTTP, and find it and the token to
show it like this:

  server  --server URL, or NAMEPLANE_SERVER, or http://127.0.0.1:8053
  token   --token-file FILE, or NAMEPLANE_TOKEN, or the file admin.token in the
          server's data folder: --data DIR, or NAMEPLANE_DATA, or ./data

Names may be given with or without their final dot. With -o json the commands
print what the API returned, for programs.

Exit status:

  0  done
  1  done, with a warning
  2  failed: something was wrong, and nothing was changed; or a domain does not work
  3  could not tell: the server was not reached, or did not answer in time
  4  the command was not understood`

func newRootCommand() *cobra.Command {
	root := newGroup("nameplane", "Serve DNS zones, manage them, and explain domains", rootLong,
		`  nameplane serve --data ./data --dns 127.0.0.1:5300 --http 127.0.0.1:8053
  nameplane zone create example.org
  nameplane record set example.org www A 192.0.2.1
  dig @127.0.0.1 -p 5300 www.example.org
  nameplane analyze www.example.com`)
	root.SilenceErrors, root.SilenceUsage = true, true
	// A command that holds others runs only to say that one is missing; its usage is that of the others.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if not .HasAvailableSubCommands}}", 1))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, "%s", err)
	})
	root.AddCommand(newServeCommand(), newZoneCommand(), newRecordCommand(), newMecCommand(), newTokenCommand(), newUserCommand(),
		newProjectCommand(), newBackupCommand(), newScanCommand(), newAnalyzeCommand(), newCompareCommand(), newWatchCommand(), newChecksCommand(), newResolversCommand(),
		newLabCommand(), newVersionCommand())
	return root
}

// newGroup is a command that does nothing but hold others. Left to itself the library would print its help and call that a
// success, so that a script with an empty variable would go on.
func newGroup(use, short, long, example string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	c.Args = cobra.ArbitraryArgs
	c.SuggestionsMinimumDistance = 2
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, "a command is missing: %s", strings.Join(verbs(c), ", "))
		}
		near := c.SuggestionsFor(args[0])
		if len(near) == 0 {
			near = verbs(c)
		}
		return usage(c, "%q is not a command of %s; did you mean %s?", args[0], c.CommandPath(), strings.Join(near, ", "))
	}
	return c
}

func verbs(c *cobra.Command) []string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// between is an argument count that is refused with the usage line, not with a number.
func between(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < least {
			return usage(c, "too few arguments: %s", c.UseLine())
		}
		if most >= 0 && len(args) > most {
			return usage(c, "unexpected argument %q: %s", args[most], c.UseLine())
		}
		return nil
	}
}
