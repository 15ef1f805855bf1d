package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/resolve"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/kubernetes/api/datum/v1alpha"
	"github.com/nameplane/nameplane/kubernetes/api/hostname/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/domain"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/hostname"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

const runLong = `Keeps one HostnameReport for each hostname of the Gateway API routes and Ingresses of the
cluster. The report is in the namespace of the route, and is deleted with it.

A hostname is checked at once when one of its objects changes, every 10 seconds while it
does not work and something changed in the last 10 minutes, and every 5 minutes when it
works. If the servers cannot be asked, the report keeps its results, and its condition
Current is False.

It reads GatewayClasses, Gateways, ListenerSets, routes, ReferenceGrants,
BackendTLSPolicies, Ingresses, Services, EndpointSlices, Namespaces and Certificates of
cert-manager. Kinds that are not installed are left out, and watched within a minute
after they are. Secrets are never read: the certificate is seen in the TLS handshake.

Only authoritative DNS servers are queried, no cache. Without --private, no packet goes
to an address that is not public, and connections go to the ports 80, 443, 8080 and 8443.

With --domains it also serves the Domains of Datum. The owner of a domain proves it with
a TXT record, a text at a URL, or the delegation to the nameservers of a DNSZone. All
authoritative servers must agree. A verified Domain is checked every day, and becomes
unverified after three misses over a day.

Several instances may run; one is the leader, the others wait.`

// defaultNamespace is the namespace in deploy/kubernetes/service.
const defaultNamespace = "nameplane-service"

// runFlags are the flags of run. There is none for the time between checks: hostname chooses it by the state of each
// hostname.
type runFlags struct {
	cluster   program.Flags
	namespace string
	elect     bool
	rate      int
	private   bool
	domains   bool
	source    source.Config
}

func newRunCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run", Short: "Write a HostnameReport for each hostname", Long: runLong, Args: cli.Args(0, 0),
		Example: `  nameplane-service run --kubeconfig admin.conf
  nameplane-service run --private --hints root.txt --anchors none`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fl := c.Flags()
	f.cluster.Add(fl, 9490)
	fl.StringVar(&f.namespace, "namespace", defaultNamespace, "`NAMESPACE` of the leader election lease")
	fl.BoolVar(&f.elect, "leader-elect", true, "run only while holding the lease "+hostname.LeaderElectionID)
	// Hostnames of one domain share its servers, which belong to somebody else.
	fl.IntVar(&f.rate, "rate", 10, "maximum number of queries per second to one DNS server")
	fl.BoolVar(&f.private, "private", false, "also query and connect to private addresses: hostnames are internal")
	fl.BoolVar(&f.domains, "domains", false,
		"serve Domains of networking.datumapis.com: look up their registration, and verify their ownership")
	fl.StringVar(&f.source.Hints, "hints", "",
		"start at the root servers in this `FILE`: each line has a name and its addresses")
	fl.StringVar(&f.source.Anchors, "anchors", "",
		"trust the DS or DNSKEY records in this `FILE` instead of the public keys; \"none\": the root is not signed")
	fl.StringVar(&f.source.Lab, "lab", "", "query the lab that \"nameplane lab up\" runs in this `DIR`")
	return c
}

func (f *runFlags) run(c *cobra.Command) error {
	if err := program.NeedNamespace(c, "namespace", f.namespace, defaultNamespace); err != nil {
		return err
	}
	if f.rate < 1 {
		return cli.Usage(c, "--rate %d: must be 1 or more queries a second", f.rate)
	}
	if f.source.Lab != "" && (f.source.Hints != "" || f.source.Anchors != "") {
		return cli.Usage(c, "--hints and --anchors cannot be used with --lab, which has its own root and keys")
	}
	log, err := f.cluster.Logger(c)
	if err != nil {
		return err
	}
	config, err := f.cluster.Config(c.Root().Name())
	if err != nil {
		return err
	}
	g, err := f.gatherer()
	if err != nil {
		return err
	}
	// The kinds of the Gateway API and of cert-manager are not in the scheme: they are read without Go types, so that a
	// cluster may lack them, or have other versions.
	s := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(s), eventsv1.AddToScheme(s), v1alpha1.AddToScheme(s),
		v1alpha.AddToScheme(s)); err != nil {
		return err
	}
	opts := ctrl.Options{Scheme: s, LeaderElection: f.elect, LeaderElectionID: hostname.LeaderElectionID}
	return f.cluster.Run(c, config, f.namespace, opts, log, func(mgr ctrl.Manager) error {
		o := hostname.Options{Gatherer: g, Log: log, Metrics: metrics.Registry}
		if f.domains {
			o.Owner = domain.Owner(mgr.GetClient())
			if err := domain.Setup(mgr, domain.Options{Gatherer: g, Log: log}); err != nil {
				return err
			}
		}
		return hostname.Setup(mgr, o)
	})
}

// gatherer returns the gatherer of the checks. Any tenant of a cluster can write a route, and any zone can name any
// address. Neither may make this program reach into the network of the cluster.
func (f *runFlags) gatherer() (gather.Gatherer, error) {
	// Only Domains show a registration: without them, no registry is asked.
	f.source.PublicOnly, f.source.NoRegistry = !f.private && f.source.Lab == "", !f.domains
	g, _, err := source.Open(f.source)
	// All checks together are one client to a server.
	g.Options.Rate, g.Options.Pace = f.rate, &resolve.Pace{Rate: f.rate}
	if err != nil || f.source.Lab != "" {
		return g, err
	}
	// The limit to public addresses would refuse everything: the servers and targets of an internal zone are private.
	if f.private {
		dial := privateDial(new(net.Dialer).DialContext)
		g.Exchanger = &resolve.Client{Dial: dial, AsIs: true}
		g.Connect = dial
		g.Options.Private = true
	}
	return g, nil
}

// internal are the special addresses to which --private allows connections. Loopback, link-local and metadata addresses
// are not among them: they have services that trust every local program.
const internal = specialaddr.Private | specialaddr.Shared

// privateDial returns a Dial for public and internal addresses. It checks the address of each connection and not the
// name, so a name that resolves to another address a moment later cannot bypass it.
func privateDial(dial gather.Dial) gather.Dial {
	var table specialaddr.Table
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return nil, err
		}
		if c := table.Classes(to.Addr()) & specialaddr.Special &^ internal; c != 0 {
			return nil, fmt.Errorf("%s is %s: %w", to.Addr(), c, gather.ErrNotAllowed)
		}
		return dial(ctx, network, address)
	}
}
