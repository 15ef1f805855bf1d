package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/api/crds"
)

const crdsLong = `Prints the custom resource definitions as YAML: EgressFirewall (k8s.ovn.org),
DNSNameResolver (network.openshift.io) and EgressFirewallDNSName (dns.openshift.io).

They validate the same as those of OVN-Kubernetes and OpenShift, with the same
messages, with one difference: names in the status of a DNSNameResolver may have
underscores. With --deep-wildcards, rules may also have "**.example.com", which
matches names any number of labels below; the manager, the agents and
CoreDNS need the same setting.

A cluster with OVN-Kubernetes has the first two already. They may remain: names
that the stock definition rejects then share the entry of their wildcard.`

// newCRDsCommand prints instead of applying: the definitions belong to the whole cluster, and tools such as Argo CD or
// Helm must own them.
func newCRDsCommand() *cobra.Command {
	var deep bool
	c := &cobra.Command{
		Use: "crds", Short: "Print the custom resource definitions", Long: crdsLong, Args: cli.Args(0, 0),
		Example: `  nameplane-egress crds | kubectl apply -f -`,
		RunE: func(c *cobra.Command, _ []string) error {
			text := crds.YAML()
			if deep {
				text = crds.DeepYAML()
			}
			_, err := c.OutOrStdout().Write(text)
			return err
		},
	}
	// The default is the form that OVN-Kubernetes accepts, so that its own components can still read every rule.
	c.Flags().BoolVar(&deep, "deep-wildcards", false, "let names of rules begin with \"**.\"")
	return c
}
