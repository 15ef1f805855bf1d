// Command nameplane-egress is the Kubernetes side of egress firewalls by DNS name.
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
	return report(os.Stderr, root.ExecuteContext(ctx))
}

const rootLong = `nameplane-egress lets the pods of a Kubernetes cluster reach exactly the DNS names
that the EgressFirewall of their namespace allows.

Its parts run side by side and meet only in custom resources, so that each can
be replaced by that of OVN-Kubernetes or OpenShift. CoreDNS with the plugin
ocp_dnsnameresolver (nameplane-coredns) belongs to them.

Exit status:

  0  done
  1  done, with a warning
  2  failed
  3  could not tell: nothing is known of it, or the cluster was not reached in time
  4  the command was not understood`

func newRootCommand() *cobra.Command {
	root := newGroup("nameplane-egress", "Egress firewalls by DNS name, on Kubernetes", rootLong,
		`  nameplane-egress crds | kubectl apply -f -
  nameplane-egress manager --kubeconfig admin.conf`)
	root.SilenceErrors, root.SilenceUsage = true, true
	// A command that holds others runs only to say that one is missing; its usage is that of the others.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if not .HasAvailableSubCommands}}", 1))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(c, "%s", err)
	})
	root.AddCommand(
		newManagerCommand(),
		newResolverCommand(),
		newAgentCommand(),
		newExplainCommand(),
		newCRDsCommand(),
	)
	return root
}

// newGroup is a command that does nothing but hold others. Left to itself the library would print its help and call that a
// success, so that a script with an empty variable would go on.
func newGroup(use, short, long, example string) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Long: long, Example: example}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(c, "a command is missing: %s", strings.Join(verbs(c), ", "))
		}
		return usage(c, "%q is not a command of %s; it has %s", args[0], c.CommandPath(), strings.Join(verbs(c), ", "))
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
