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

// logAnnotation is the annotation of namespaces that configures ACL logging in OVN-Kubernetes.
const logAnnotation = "k8s.ovn.org/acl-logging"

// objects are all objects that the agent reads. They belong to the cache and must not be modified.
type objects struct {
	firewalls  []apiv1.EgressFirewall
	resolvers  []v1alpha1.DNSNameResolver
	nodes      []corev1.Node
	namespaces []metav1.PartialObjectMetadata
	services   []client.Object // ServiceCIDRs, or Services if the cluster has no ServiceCIDRs
}

// reading is the parsed form of objects.
type reading struct {
	input    ovn.Input                        // without learned addresses
	policy   learn.Policy                     // which addresses must not be opened
	status   map[enforce.Pattern][]netip.Addr // addresses in the statuses of DNSNameResolvers
	used     map[enforce.Pattern]bool         // patterns that rules use
	errs     map[string][]error               // errors in a namespace's firewall
	versions map[string]string                // resource versions of DNSNameResolvers, by name
}

// reader parses objects. It caches the results, because nearly all objects are unchanged since the last pass.
type reader struct {
	opts      Options
	firewalls map[types.UID]parsedFirewall
	resolvers map[types.UID]parsedResolver
	networks  map[objectKey]networksOf // networks of the last reading
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
		input: ovn.Input{ClusterSubnets: r.opts.ClusterSubnets, Logging: logging(o.namespaces)}, policy: r.policy(o),
		status: map[enforce.Pattern][]netip.Addr{}, used: map[enforce.Pattern]bool{}, errs: map[string][]error{},
		versions: map[string]string{},
	}
	for _, s := range r.opts.ClusterSubnets {
		out.input.V4 = out.input.V4 || s.Addr().Is4()
		out.input.V6 = out.input.V6 || s.Addr().Is6()
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
			out.input.Frozen = append(out.input.Frozen, ef.Namespace)
			out.input.Names = append(out.input.Names, p.Names...)
		} else {
			out.input.Firewalls = append(out.input.Firewalls, p.resolved(o.nodes))
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

// resolved returns the firewall with the addresses of the nodes that its selectors select now.
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
		return p // the schema accepts no such name, and no rule has it
	}
	for _, n := range obj.Status.ResolvedNames {
		name, err := dnsname.Parse(string(n.DNSName))
		if err != nil || !p.pattern.Matches(name) {
			continue
		}
		for _, a := range n.ResolvedAddresses {
			// No packet has an IPv4-mapped IPv6 address.
			if addr, err := netip.ParseAddr(a.IP); err == nil && !addr.Is4In6() && addr.Zone() == "" {
				p.addrs = append(p.addrs, addr)
			}
		}
	}
	return p
}

// hostAddrs returns the addresses of a node: those in the annotation of OVN-Kubernetes, or else those of the kubelet.
func hostAddrs(n *corev1.Node) []netip.Addr {
	if hosts, ok := node.Hosts(n); ok {
		return hosts
	}
	return node.KubeletAddrs(n)
}

// nodeSubnets returns the subnets of a node's pods: those of OVN-Kubernetes, or else its pod CIDRs.
func nodeSubnets(n *corev1.Node) []netip.Prefix {
	if subnets, ok := node.Subnets(n); ok {
		return subnets
	}
	return node.PodCIDRs(n)
}

// podPrefixes returns the subnets of the pods of the selected nodes.
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

// soleNode returns the only node of a zone, or the zero Node if there are several.
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

// logging parses the annotations of namespaces. Invalid severities are ignored.
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
