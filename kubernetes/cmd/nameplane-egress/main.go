// Command nameplane-egress runs the Kubernetes parts of egress firewalls by DNS name.
//
// Start with newRootCommand in main.go, which lists the subcommands. Each of them is in its own file and calls a
// package of internal/controller.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRootCommand(), os.Args[1:]))
}

const rootLong = `nameplane-egress lets the pods of a Kubernetes cluster reach exactly the DNS names
that the EgressFirewall of their namespace allows.

Its parts share only custom resources, so that each can
be replaced by that of OVN-Kubernetes or OpenShift. CoreDNS with the plugin
ocp_dnsnameresolver (nameplane-coredns) is one of the parts.

Exit status:

  0  done
  1  done, with a warning
  2  failed
  3  unknown: there is no information, or the cluster was not reached in time
  4  invalid command line`

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("nameplane-egress", "Egress firewalls by DNS name, on Kubernetes", rootLong,
		`  nameplane-egress crds | kubectl apply -f -
  nameplane-egress manager --kubeconfig admin.conf`)
	root.AddCommand(
		newManagerCommand(),
		newResolverCommand(),
		newAgentCommand(),
		newExplainCommand(),
		newCRDsCommand(),
	)
	return root
}
