// Command nameplane-egress is the Kubernetes side of egress firewalls by DNS name.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/nameplane/nameplane/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRootCommand(), os.Args[1:]))
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

// undefined adds a hint to an error of a cluster that does not know our kinds.
func undefined(err error, code int) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return &cli.Failure{Code: code, Text: err.Error(), Err: err,
		Hint: "the cluster lacks the definitions: nameplane-egress crds | kubectl apply -f -"}
}
