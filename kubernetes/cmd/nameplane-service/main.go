// Command nameplane-service watches the hostnames of a Kubernetes cluster: from their objects to DNS, certificates and
// pages.
//
// Start with newRootCommand in main.go, which lists the subcommands. Each of them is in its own file.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRootCommand(), os.Args[1:]))
}

const rootLong = `nameplane-service checks each hostname of a Kubernetes cluster again and again, from
its Gateway, route or Ingress to its DNS records, certificate and page, and writes the
first broken link into a HostnameReport beside the route.

"nameplane service" does the same once, for the objects in a file.

Exit status:

  0  done
  2  failed
  3  unknown: the cluster was not reached
  4  invalid command line`

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("nameplane-service", "Watch the hostnames of a Kubernetes cluster", rootLong,
		`  nameplane-service crds | kubectl apply -f -
  nameplane-service run --kubeconfig admin.conf`)
	root.AddCommand(newRunCommand(), newCRDsCommand())
	return root
}
