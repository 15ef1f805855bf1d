package agent

import (
	"encoding/json"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/dnsname"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/ovn"
)

// logAnnotation is the annotation of namespaces that OVN-Kubernetes reads.
const logAnnotation = "k8s.ovn.org/acl-logging"

// objects are all that the API server says. They belong to the cache and are not changed.
type objects struct {
	firewalls  []apiv1.EgressFirewall
	resolvers  []v1alpha1.DNSNameResolver
	nodes      []corev1.Node
	namespaces []metav1.PartialObjectMetadata
	services   []client.Object // ServiceCIDRs, or Services where there are none
}

// reading is what objects mean.
type reading struct {
	world    ovn.World                        // without what is learned
	policy   learn.Policy                     // which addresses no name may open
	status   map[enforce.Pattern][]netip.Addr // addresses in the statuses of DNSNameResolvers
	used     map[enforce.Pattern]bool         // by rules
	errs     map[string][]error               // what is wrong with a namespace's firewall
	versions map[string]string                // resource versions of DNSNameResolvers, by their names
}

// reader turns objects into readings. It remembers what it parsed, because nearly all objects are as they were the last time.
type reader struct {
	opts      Options
	firewalls map[types.UID]parsedFirewall
	resolvers map[types.UID]parsedResolver
	networks  map[objectKey]networksOf // of the last reading
	cluster   *learn.Networks          // built from networks
}

type parsedFirewall struct {
	generation int64
	egress.Firewall
}

type parsedResolver struct {
	version string
	pattern enforce.Pattern
	addrs   []netip.Addr
}

func newReader(o Options) *reader {
	return &reader{opts: o, firewalls: map[types.UID]parsedFirewall{}, resolvers: map[types.UID]parsedResolver{}}
}

func (r *reader) read(o objects) reading {
	out := reading{
		world: ovn.World{ClusterSubnets: r.opts.ClusterSubnets, Logging: logging(o.namespaces)}, policy: r.policy(o),
		status: map[enforce.Pattern][]netip.Addr{}, used: map[enforce.Pattern]bool{}, errs: map[string][]error{}, versions: map[string]string{},
	}
	for _, s := range r.opts.ClusterSubnets {
		out.world.V4 = out.world.V4 || s.Addr().Is4()
		out.world.V6 = out.world.V6 || s.Addr().Is6()
	}
	firewalls := make(map[types.UID]parsedFirewall, len(o.firewalls))
	for i := range o.firewalls {
		ef := &o.firewalls[i]
		if ef.Name != egress.Name {
			continue
		}
		p := r.firewall(ef)
		firewalls[ef.UID] = p
		out.errs[ef.Namespace] = p.Errs
		if p.Frozen {
			out.world.Frozen = append(out.world.Frozen, ef.Namespace)
			out.world.Names = append(out.world.Names, p.Names...)
		} else {
			out.world.Firewalls = append(out.world.Firewalls, p.resolved(o.nodes))
		}
		for _, pattern := range p.Names {
			out.used[pattern] = true
		}
	}
	resolvers := make(map[types.UID]parsedResolver, len(o.resolvers))
	for i := range o.resolvers {
		p := r.resolver(&o.resolvers[i])
		resolvers[o.resolvers[i].UID] = p
		out.versions[o.resolvers[i].Name] = p.version
		out.status[p.pattern] = append(out.status[p.pattern], p.addrs...)
	}
	r.firewalls, r.resolvers = firewalls, resolvers
	return out
}

func (r *reader) firewall(ef *apiv1.EgressFirewall) parsedFirewall {
	if p, ok := r.firewalls[ef.UID]; ok && p.generation == ef.Generation && ef.Generation != 0 {
		return p
	}
	return parsedFirewall{ef.Generation, egress.Read(ef, r.opts.Deep)}
}

// resolved is the firewall with the addresses of the nodes its selectors select now.
func (p parsedFirewall) resolved(nodes []corev1.Node) enforce.Firewall {
	f := p.Firewall.Firewall
	if len(p.Selectors) == 0 {
		return f
	}
	f.Rules = slices.Clone(f.Rules)
	for i, rule := range f.Rules {
		selector := p.Selectors[rule.Index]
		if selector == nil {
			continue
		}
		for j := range nodes {
			if selector.Matches(labels.Set(nodes[j].Labels)) {
				f.Rules[i].Nodes = append(f.Rules[i].Nodes, hostAddrs(&nodes[j])...)
			}
		}
	}
	return f
}

func (r *reader) resolver(obj *v1alpha1.DNSNameResolver) parsedResolver {
	if p, ok := r.resolvers[obj.UID]; ok && p.version == obj.ResourceVersion {
		return p
	}
	p := parsedResolver{version: obj.ResourceVersion}
	var err error
	if p.pattern, err = enforce.ParsePattern(string(obj.Spec.Name), enforce.PatternOptions{Deep: true}); err != nil {
		return p // the schema lets none pass; whatever it is, no rule has it
	}
	for _, n := range obj.Status.ResolvedNames {
		name, err := dnsname.Parse(string(n.DNSName))
		if err != nil || !p.pattern.Matches(name) {
			continue
		}
		for _, a := range n.ResolvedAddresses {
			// IPv4 inside IPv6 is no address that a packet has (D8).
			if addr, err := netip.ParseAddr(a.IP); err == nil && !addr.Is4In6() && addr.Zone() == "" {
				p.addrs = append(p.addrs, addr)
			}
		}
	}
	return p
}

// hostAddrs returns the addresses of a node: all that OVN-Kubernetes knows of, or else those of the kubelet.
func hostAddrs(n *corev1.Node) []netip.Addr {
	if hosts, ok := node.Hosts(n); ok {
		return hosts
	}
	return node.KubeletAddrs(n)
}

// nodeSubnets returns the subnets of a node's pods: those of OVN-Kubernetes, or else those of the cluster.
func nodeSubnets(n *corev1.Node) []netip.Prefix {
	if subnets, ok := node.Subnets(n); ok {
		return subnets
	}
	return node.PodCIDRs(n)
}

// podPrefixes returns the subnets of the pods of some nodes.
func podPrefixes(nodes []corev1.Node, which func(*corev1.Node) bool) []netip.Prefix {
	var out []netip.Prefix
	for i := range nodes {
		if which(&nodes[i]) {
			out = append(out, nodeSubnets(&nodes[i])...)
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

func inZone(n *corev1.Node, zone string) bool { return node.Zone(n) == zone }

// soleNode is the only node of a zone; zero when there are others.
func soleNode(nodes []corev1.Node, zone string) ovn.Node {
	var out ovn.Node
	for i := range nodes {
		if !inZone(&nodes[i], zone) {
			continue
		}
		if out != (ovn.Node{}) {
			return ovn.Node{}
		}
		out = ovn.Node{Name: nodes[i].Name, Chassis: nodes[i].Annotations[node.ChassisAnnotation]}
	}
	return out
}

// logging reads the annotations of namespaces. What is not a severity is as if it were not there.
func logging(namespaces []metav1.PartialObjectMetadata) map[string]ovn.Logging {
	out := map[string]ovn.Logging{}
	for i := range namespaces {
		text := namespaces[i].Annotations[logAnnotation]
		if text == "" {
			continue
		}
		var l struct{ Allow, Deny string }
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		out[namespaces[i].Name] = ovn.Logging{Allow: severity(l.Allow), Deny: severity(l.Deny)}
	}
	return out
}

func severity(s string) string {
	if slices.Contains([]string{"alert", "warning", "notice", "info", "debug"}, s) {
		return s
	}
	return ""
}
