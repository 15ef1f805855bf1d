package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/api/crds"
)

const crdsLong = `Prints the custom resource definition of HostnameReport (nameplane.io) as YAML, and with
--domains that of Domain (networking.datumapis.com), which a cluster of Datum has.

The definitions of the Gateway API and of cert-manager are not part of it: kinds that a
cluster does not have are left out.`

// newCRDsCommand prints instead of applying: the definitions belong to the whole cluster, and tools such as Argo CD or
// Helm must own them.
func newCRDsCommand() *cobra.Command {
	var domains bool
	c := &cobra.Command{
		Use: "crds", Short: "Print the custom resource definitions", Long: crdsLong, Args: cli.Args(0, 0),
		Example: `  nameplane-service crds | kubectl apply -f -
  nameplane-service crds --domains | kubectl apply -f -`,
		RunE: func(c *cobra.Command, _ []string) error {
			text := crds.Service()
			if domains {
				text = slices.Concat(text, crds.Domains())
			}
			_, err := c.OutOrStdout().Write(text)
			return err
		},
	}
	c.Flags().BoolVar(&domains, "domains", false, "also print the definition of Domain")
	return c
}
