package main

import (
	"log/slog"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/manager"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

const managerLong = `Keeps one DNSNameResolver for each DNS name in the EgressFirewalls of the cluster:
creates it with the first rule for the name, creates it again if it was deleted by
hand, and deletes it with the last rule. Objects without a rule are deleted.

Rules that the schema accepts but that are not valid are skipped; the
status of the EgressFirewall and an Event say which and why. The other rules
of that firewall apply. The status is "EgressFirewall Rules applied" when every zone
has reported that.

Several instances may run; one is the leader, the others wait. It replaces the
cluster manager of OVN-Kubernetes with --enable-dns-name-resolver; do not run
both.`

// newManagerCommand runs with leader election by default: two managers would create and delete the same objects in
// turn.
func newManagerCommand() *cobra.Command {
	var f program.Flags
	var o manager.Options
	var elect bool
	c := &cobra.Command{
		Use: "manager", Short: "Keep the DNSNameResolvers of all EgressFirewalls", Long: managerLong, Args: cli.Args(0, 0),
		Example: `  nameplane-egress manager --kubeconfig admin.conf
  nameplane-egress manager --namespace openshift-ovn-kubernetes`,
		RunE: func(c *cobra.Command, _ []string) error {
			// The objects of all names are in one namespace, which is also that of the lease.
			if err := needNamespace(c, "namespace", o.Namespace); err != nil {
				return err
			}
			opts := ctrl.Options{Cache: manager.Cache(o), LeaderElection: elect, LeaderElectionID: manager.LeaderElectionID}
			o.Metrics = metrics.Registry
			return run(&f, c, o.Namespace, opts, func(mgr ctrl.Manager, log *slog.Logger) error {
				o.Log = log
				return manager.Setup(mgr, o)
			})
		},
	}
	fl := c.Flags()
	// Each command has its own ports, because all of them may run on one node with the network of the host.
	f.Add(fl, 9480)
	fl.StringVar(&o.Namespace, "namespace", egress.DefaultNamespace,
		"`NAMESPACE` of the DNSNameResolvers and of the leader election lease")
	// Not the default: the schema of OVN-Kubernetes does not accept such names, and its own agents do not know them.
	fl.BoolVar(&o.Deep, "deep-wildcards", false, "accept names that begin with \"**.\" (see nameplane-egress crds)")
	fl.BoolVar(&o.DNSNames, "serve-egressfirewalldnsname", false,
		"create an EgressFirewallDNSName for each DNSNameResolver")
	fl.BoolVar(&elect, "leader-elect", true, "run only while holding the lease "+manager.LeaderElectionID)
	return c
}
