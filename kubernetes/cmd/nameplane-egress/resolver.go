package main

import (
	"errors"
	"log/slog"
	"net/netip"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/resolver"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

const resolverLong = `Keeps the addresses of DNSNameResolvers fresh. It queries CoreDNS for every name when
its TTL ends, or earlier if CoreDNS does not cache it, so that the plugin
ocp_dnsnameresolver sees the answer and stores it, and removes addresses
whose TTL ended five seconds ago.

A name with several addresses is queried at up to five pods of CoreDNS, which
may know different ones; a pod that does not answer is skipped for a while and does
not delay the others. While no pod answers, nothing is removed.

Several instances may run; one is the leader, the others wait. It replaces the
DNSNameResolver controller of the DNS operator; do not run both.`

// newResolverCommand has no flag for an upstream server: the addresses must be those that pods receive, so CoreDNS must
// be asked.
func newResolverCommand() *cobra.Command {
	var f program.Flags
	var o resolver.Options
	var servers []string
	var elect bool
	c := &cobra.Command{
		Use: "resolver", Short: "Keep the addresses of DNSNameResolvers fresh", Long: resolverLong, Args: cli.Args(0, 0),
		Example: `  nameplane-egress resolver --coredns-namespace openshift-dns --coredns-service-name dns-default
  nameplane-egress resolver --kubeconfig admin.conf --server 10.96.0.10:53`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := resolverOptions(c, &o, servers); err != nil {
				return err
			}
			opts := ctrl.Options{Cache: resolver.Cache(o), LeaderElection: elect, LeaderElectionID: resolver.LeaderElectionID}
			return run(&f, c, o.Namespace, opts, func(mgr ctrl.Manager, _ *slog.Logger) error { return resolver.Setup(mgr, o) })
		},
	}
	fl := c.Flags()
	f.Add(fl, 9482)
	fl.StringVar(&o.Namespace, "dns-name-resolver-namespace", egress.DefaultNamespace,
		"`NAMESPACE` of the DNSNameResolvers and of the leader election lease")
	fl.StringVar(&o.ServiceNamespace, "coredns-namespace", "kube-system", "`NAMESPACE` of the service of CoreDNS")
	fl.StringVar(&o.ServiceName, "coredns-service-name", "kube-dns", "`NAME` of the service of CoreDNS")
	// The port is that of the pods and not of the service: a service would choose one pod, and each pod has its own cache.
	fl.Uint16Var(&o.Port, "coredns-port", 53, "`PORT` of the CoreDNS pods")
	fl.StringSliceVar(&servers, "server", nil, "query this `ADDR:PORT` instead of the pods of a service; may be repeated")
	// The limit protects CoreDNS after a restart, when every name is due at once.
	fl.IntVar(&o.Rate, "rate", 5000, "maximum number of lookups per second")
	fl.BoolVar(&elect, "leader-elect", true, "run only while holding the lease "+resolver.LeaderElectionID)
	return c
}

// resolverOptions parses the servers, and rejects values with which nothing would be looked up.
func resolverOptions(c *cobra.Command, o *resolver.Options, servers []string) (err error) {
	if err := needNamespace(c, "dns-name-resolver-namespace", o.Namespace); err != nil {
		return err
	}
	// Addresses and not names: a name would need a lookup at the very server that it names.
	if o.Servers, err = parseServers(servers); err != nil {
		return cli.Usage(c, "--server %s", err)
	}
	if err := needNamespace(c, "coredns-namespace", o.ServiceNamespace); err != nil {
		return err
	}
	switch {
	case o.ServiceName == "":
		return cli.Usage(c, "--coredns-service-name is empty: must be the name of the service of CoreDNS, such as kube-dns")
	case o.Port == 0:
		return cli.Usage(c, "--coredns-port 0: must be from 1 to 65535")
	case o.Rate <= 0:
		return cli.Usage(c, "--rate %d: must be 1 or more lookups a second", o.Rate)
	}
	return nil
}

// parseServers parses the values of --server. They replace the pods of CoreDNS, so a port is required. 53 is not
// assumed: servers for tests often use another port, and a server that is not there cannot be distinguished from a
// slow one.
func parseServers(list []string) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	for _, s := range list {
		a, err := netip.ParseAddrPort(s)
		if err != nil || a.Port() == 0 {
			return nil, errors.New(s + ": must be an address with a port, such as 10.96.0.10:53")
		}
		out = append(out, a)
	}
	return out, nil
}
