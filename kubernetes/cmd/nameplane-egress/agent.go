package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/agent"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/hold"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/internal/program"
)

const agentLong = `Programs the switches of one zone. The agent keeps the address sets, port groups and
ACLs in the zone's northbound database equal to what EgressFirewalls and
DNSNameResolvers define, and repairs changes by other programs. There is one agent for
each northbound database: one on each node where every node is a zone, or one for the
cluster.

With --listen, CoreDNS with the plugin ocp_dnsnameresolver sends it new addresses
before the answer goes to the pod, and waits until the switch has them. Both sides
present certificates; that of the other side must have one of the given names.

Some addresses are never opened for a name: those of nodes, pods and services,
of cloud metadata, and special ones such as loopback. --refuse and --permit change that.

The rows are those of OVN-Kubernetes. The agent replaces its egress firewall; do not
run both. Where OVN-Kubernetes keeps the port groups of namespaces, give
--manage-port-groups=false.

Connections continue for the time of --keep-established when their address is removed
from a name; new ones are refused. This needs an address set and an ACL in addition to
those of OVN-Kubernetes for each name, and makes the switch track connections. A deny
rule before the one that allowed a connection still ends it.`

// agentFlags are the flags that need parsing before they become agent.Options.
type agentFlags struct {
	cluster  program.Flags
	subnets  []string
	prefixes []string
	refuse   []string
	permit   []string
	nat64    []string
	listen   string
	stream   hold.Files
	nb       hold.Files // Peers is not used
}

// newAgentCommand has no leader election: each northbound database has exactly one agent, and none may wait.
func newAgentCommand() *cobra.Command {
	var f agentFlags
	var o agent.Options
	c := &cobra.Command{
		Use: "agent", Short: "Program the switches of one zone", Long: agentLong, Args: cli.Args(0, 0),
		Example: `  nameplane-egress agent --zone node1 --nb unix:/var/run/ovn/ovnnb_db.sock --cluster-subnets 10.128.0.0/14
  nameplane-egress agent --zone node1 --listen 192.0.2.10:9500 \
    --tls-cert agent.pem --tls-key agent.key --tls-ca ca.pem`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.options(c, &o); err != nil {
				return err
			}
			// The agent closes its listener when it stops. This Close is for an agent that never starts, because
			// the cluster is not there; a second Close is harmless.
			if o.Listen != nil {
				defer o.Listen.Close()
			}
			return run(&f.cluster, c, o.Namespace, ctrl.Options{Cache: agent.Cache(o)},
				func(mgr ctrl.Manager, log *slog.Logger) error {
					o.Log, o.Metrics = log, metrics.Registry
					return agent.Setup(mgr, o)
				})
		},
	}
	fl := c.Flags()
	f.cluster.Add(fl, 9484)
	fl.StringVar(&o.Zone, "zone", node.DefaultZone,
		"`NAME` of the zone, as nodes have it in the annotation k8s.ovn.org/zone-name")
	fl.StringVar(&o.Node, "node", "", "`NAME` of the agent in explanations (default: that of the zone)")
	fl.StringVar(&o.NB.Address, "nb", "unix:/var/run/ovn/ovnnb_db.sock",
		"northbound database: unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")
	fl.StringVar(&f.nb.Cert, "nb-cert", "", "certificate `FILE` for ssl")
	fl.StringVar(&f.nb.Key, "nb-key", "", "key `FILE` for ssl")
	fl.StringVar(&f.nb.CA, "nb-ca", "", "`FILE` with the CA of the database's certificate")
	fl.StringVar(&o.NB.Switch, "switch", "",
		"database of this node's Open vSwitch at unix:PATH, which confirms some milliseconds earlier than the northbound "+
			"database, if the node is the only one of its zone")
	fl.StringVar(&o.Namespace, "dns-name-resolver-namespace", egress.DefaultNamespace,
		"`NAMESPACE` of the DNSNameResolvers")
	// The default is that of OVN-Kubernetes, so that an agent that replaces its firewall needs no flag for it.
	fl.StringSliceVar(&f.subnets, "cluster-subnets", []string{"10.128.0.0/14"},
		"`PREFIX`es of all pods; rules by address and name do not apply to them, and only their address families are "+
			"programmed")
	fl.StringSliceVar(&f.prefixes, "node-prefixes", nil,
		"`PREFIX`es of the pods of this zone (default: from the annotation k8s.ovn.org/node-subnets of its nodes)")
	fl.StringSliceVar(&f.refuse, "refuse", nil,
		"further `NETWORK`s that no name may open; use the values of refuse in the Corefile")
	fl.StringSliceVar(&f.permit, "permit", nil,
		"`NETWORK`s that names may open nevertheless, or the words nodes and services; use the values of permit in the "+
			"Corefile")
	fl.StringSliceVar(&f.nat64, "nat64", nil,
		"`PREFIX`es of the network's own NAT64, whose embedded IPv4 addresses are checked; use the values of nat64 in the "+
			"Corefile")
	fl.BoolVar(&o.NB.ManageGroups, "manage-port-groups", true,
		"create the port groups of namespaces and keep the ports of their pods in them")
	fl.BoolVar(&o.NB.Stock, "stock-acls", false,
		"create one ACL for a rule by name even if the cluster has IPv4 and IPv6, as OVN-Kubernetes does, and no guards; "+
			"OVN then takes longer for every new address, and first packets to an address near a refused one are lost")
	// A day is longer than most connections live, and bounds how many former addresses a name can keep.
	fl.DurationVar(&o.KeepFor, "keep-established", 24*time.Hour,
		"time for which connections may outlive their address; 0 disables it")
	fl.BoolVar(&o.Deep, "deep-wildcards", false, "accept names that begin with \"**.\" (see nameplane-egress crds)")
	fl.BoolVar(&o.DNSNames, "serve-egressfirewalldnsname", false, "report programmed addresses in EgressFirewallDNSNames")
	fl.StringVar(&f.listen, "listen", "", "`ADDR`ess of this node for CoreDNS; without it there is no stream")
	addStreamFlags(fl, &f.stream)
	fl.StringSliceVar(&f.stream.Peers, "plugin-name", []string{hold.PluginName},
		"`NAME`s; the certificate of a client must have one of them")
	return c
}

// addStreamFlags declares the flags for the certificate of one side of the stream.
func addStreamFlags(fl *pflag.FlagSet, f *hold.Files) {
	fl.StringVar(&f.Cert, "tls-cert", "", "certificate `FILE` for the stream")
	fl.StringVar(&f.Key, "tls-key", "", "key `FILE` of the certificate")
	fl.StringVar(&f.CA, "tls-ca", "", "`FILE` with the CA that signed the other side's certificate")
}

// options fills in the options that need parsing or opening.
func (f *agentFlags) options(c *cobra.Command, o *agent.Options) (err error) {
	if err := needNamespace(c, "dns-name-resolver-namespace", o.Namespace); err != nil {
		return err
	}
	// An agent without a zone could not know which pods are its own.
	if o.Zone == "" {
		return cli.Usage(c, "--zone is empty: must be the name of the zone, such as that of the node")
	}
	// Check the policy before openStream: CoreDNS must not connect to an agent that does not know which addresses
	// it has to refuse.
	if err := f.policy(c, o); err != nil {
		return err
	}
	if o.ClusterSubnets, err = parsePrefixes(f.subnets); err != nil {
		return cli.Usage(c, "--cluster-subnets %s", err)
	}
	if o.PodPrefixes, err = parsePrefixes(f.prefixes); err != nil {
		return cli.Usage(c, "--node-prefixes %s", err)
	}
	// Deny rules would then also apply between pods, which OVN-Kubernetes never does.
	if len(o.ClusterSubnets) == 0 {
		return cli.Usage(c, "--cluster-subnets is empty: without it every address counts as outside the cluster")
	}
	if o.KeepFor < 0 {
		return cli.Usage(c, "--keep-established %s: must not be negative", o.KeepFor)
	}
	// The switch is always on the agent's own node. Its database on another node says nothing about this zone.
	if scheme, path, _ := strings.Cut(o.NB.Switch, ":"); o.NB.Switch != "" && (scheme != "unix" || path == "") {
		return cli.Usage(c, "--switch %s: must be unix:PATH, or empty", o.NB.Switch)
	}
	switch scheme, rest, _ := strings.Cut(o.NB.Address, ":"); {
	case rest == "" || scheme != "unix" && scheme != "tcp" && scheme != "ssl":
		return cli.Usage(c, "--nb %s: must be unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT", o.NB.Address)
	case scheme == "ssl":
		if o.NB.TLS, err = clientTLS(f.nb); err != nil {
			return &cli.Failure{Code: cli.ExitError, Text: "--nb-cert, --nb-key, --nb-ca: " + err.Error(), Err: err,
				Hint: "all three are needed for ssl"}
		}
	}
	return f.openStream(c, o)
}

// policy parses the networks that names must not open.
func (f *agentFlags) policy(c *cobra.Command, o *agent.Options) (err error) {
	if o.Refuse, err = parseNetworks(f.refuse); err != nil {
		return cli.Usage(c, "--refuse %s", err)
	}
	// nodes and services are words and not networks, because their addresses change while the agent runs.
	o.PermitNodes, o.PermitServices = slices.Contains(f.permit, "nodes"), slices.Contains(f.permit, "services")
	nets := slices.DeleteFunc(slices.Clone(f.permit), func(s string) bool { return s == "nodes" || s == "services" })
	if o.Permit, err = parseNetworks(nets); err != nil {
		return cli.Usage(c, "--permit %s, or nodes, or services", err)
	}
	for _, s := range f.nat64 {
		p, err := specialaddr.ParseNAT64(s)
		if err != nil {
			return cli.Usage(c, "--nat64: %s", err)
		}
		o.NAT64 = append(o.NAT64, p)
	}
	return nil
}

// openStream opens the listener for CoreDNS before the agent connects to the cluster, so that a wrong address or
// certificate is reported at once. Without --listen there is no listener.
func (f *agentFlags) openStream(c *cobra.Command, o *agent.Options) (err error) {
	if f.listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(f.listen)
	// All addresses of the node would include those that pods reach: the listener is for CoreDNS only.
	if addr, _ := netip.ParseAddr(host); err != nil || host == "" || addr.IsUnspecified() {
		return cli.Usage(c, "--listen %s: must be one address of this node and a port, such as 192.0.2.10:9500, not all "+
			"addresses", f.listen)
	}
	if f.stream.Cert == "" || f.stream.Key == "" || f.stream.CA == "" {
		return cli.Usage(c, "--listen needs --tls-cert, --tls-key and --tls-ca: a client that may connect can open the "+
			"firewall")
	}
	if o.TLS, err = f.stream.Server(); err != nil {
		return &cli.Failure{Code: cli.ExitError, Text: "the stream's certificate: " + err.Error(), Err: err,
			Hint: "check --tls-cert, --tls-key and --tls-ca"}
	}
	if o.Listen, err = net.Listen("tcp", f.listen); err != nil {
		return &cli.Failure{Code: cli.ExitError, Text: "--listen: " + err.Error(), Err: err,
			Hint: "is another agent running?"}
	}
	return nil
}

// parsePrefixes also accepts the form of OVN-Kubernetes, with the length of a node's subnet after the prefix:
// 10.128.0.0/14/23.
func parsePrefixes(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		text := s
		if parts := strings.Split(s, "/"); len(parts) == 3 {
			text = parts[0] + "/" + parts[1]
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%s: must be a prefix such as 10.128.0.0/14", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// parseNetworks parses prefixes and single addresses.
func parseNetworks(list []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, s := range list {
		p, err := netip.ParsePrefix(s)
		// The Corefile accepts single addresses in refuse and permit; both sides must accept the same values.
		if a, err2 := netip.ParseAddr(s); err2 == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: must be a network such as 192.0.2.0/24, or an address", s)
		}
		out = append(out, p.Masked())
	}
	return out, nil
}

// clientTLS returns a configuration for a database whose certificate has no known name.
func clientTLS(f hold.Files) (*tls.Config, error) {
	cert, pool, err := f.Load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, RootCAs: pool,
		// OVN's own tools check the CA and not the name, and its certificates are made for that.
		InsecureSkipVerify: true, VerifyConnection: func(cs tls.ConnectionState) error {
			opts := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool()}
			for _, c := range cs.PeerCertificates[1:] {
				opts.Intermediates.AddCert(c)
			}
			_, err := cs.PeerCertificates[0].Verify(opts)
			return err
		}}, nil
}
