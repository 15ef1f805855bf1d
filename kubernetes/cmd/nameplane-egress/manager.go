package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/manager"
)

const managerLong = `Keeps one DNSNameResolver for each DNS name in the EgressFirewalls of the cluster:
makes it when the first rule has the name, makes it again when it was deleted by
hand, and removes it with the last rule. Objects that no rule asks for go.

Rules that the schema lets pass and that still make no sense are left out; the
status of the EgressFirewall says which and why, and an Event too. The other rules
of that firewall hold. The status is "EgressFirewall Rules applied" when every zone
has said so.

Several may run; one of them works, the others wait. Do not run it beside the
cluster manager of OVN-Kubernetes with --enable-dns-name-resolver, whose place it
takes.`

func newManagerCommand() *cobra.Command {
	var f clusterFlags
	var o manager.Options
	var elect bool
	c := &cobra.Command{
		Use: "manager", Short: "Keep the DNSNameResolvers of all EgressFirewalls", Long: managerLong, Args: cli.Args(0, 0),
		Example: `  nameplane-egress manager --kubeconfig admin.conf
  nameplane-egress manager --namespace openshift-ovn-kubernetes`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needNamespace(c, "namespace", o.Namespace); err != nil {
				return err
			}
			opts := ctrl.Options{Cache: manager.Cache(o), LeaderElection: elect, LeaderElectionID: manager.LeaderElectionID}
			o.Metrics = metrics.Registry
			return f.run(c, o.Namespace, opts, func(mgr ctrl.Manager, log *slog.Logger) error {
				o.Log = log
				return manager.Setup(mgr, o)
			})
		},
	}
	fl := c.Flags()
	f.add(fl, 9480)
	fl.StringVar(&o.Namespace, "namespace", egress.DefaultNamespace, "`NAMESPACE` of the DNSNameResolvers, and of the lease of the one that works")
	fl.BoolVar(&o.Deep, "deep-wildcards", false, "accept names that begin with \"**.\" (see nameplane-egress crds)")
	fl.BoolVar(&o.DNSNames, "serve-egressfirewalldnsname", false, "keep an EgressFirewallDNSName beside each DNSNameResolver")
	fl.BoolVar(&elect, "leader-elect", true, "work only while holding the lease "+manager.LeaderElectionID)
	return c
}
