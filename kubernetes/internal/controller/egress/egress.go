// Package egress has the code that the manager and the agents share: reading an EgressFirewall, and writing one's own
// part of a status.
//
// Start with Read, which parses an EgressFirewall, and Apply, which writes a part of a status.
package egress

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// DefaultNamespace is the namespace in which OVN-Kubernetes has its DNSNameResolvers.
const DefaultNamespace = "ovn-kubernetes"

// Name is the name of every EgressFirewall. The schema requires it; objects from before that schema are ignored.
const Name = "default"

// The messages in a status are those of OVN-Kubernetes: its cluster manager and its users search for them.
const (
	Applied    = "EgressFirewall Rules applied"
	NotApplied = "EgressFirewall Rules not correctly applied"
	MoreRules  = " more rules are wrong" // end of the manager's last message, if there are too many
	// ManagerZone is the zone name in the manager's messages. The manager writes messages only about errors: a stock
	// cluster manager, which counts messages by zone, has the same result with and without them.
	ManagerZone = "cluster-manager"
)

// Firewall is a parsed EgressFirewall.
type Firewall struct {
	enforce.Firewall                         // the valid rules, without the addresses of nodes
	Selectors        map[int]labels.Selector // node selectors, by the index of the rule
	Errs             []error                 // errors, in the order of the rules
	Frozen           bool                    // there are too many rules, so none is applied
	// Names are the names in the rules. A frozen firewall has the names of its first MaxRules rules: its previous rules
	// may still be in force, and if it only grew, their names are among these.
	Names []enforce.Pattern
}

// Read parses an EgressFirewall. With deep, names may begin with "**.".
func Read(ef *apiv1.EgressFirewall, deep bool) Firewall {
	in := make([]enforce.RuleInput, len(ef.Spec.Egress))
	f := Firewall{Selectors: map[int]labels.Selector{}, Frozen: len(in) > enforce.MaxRules}
	for i, r := range ef.Spec.Egress {
		in[i] = enforce.RuleInput{Type: string(r.Type), CIDR: r.To.CIDRSelector, DNSName: r.To.DNSName,
			HasNodeSelector: r.To.NodeSelector != nil, Options: enforce.PatternOptions{Deep: deep}}
		if r.To.NodeSelector != nil {
			f.Selectors[i], in[i].SelectorError = metav1.LabelSelectorAsSelector(r.To.NodeSelector)
		}
		for _, p := range r.Ports {
			in[i].Ports = append(in[i].Ports, enforce.PortInput{Protocol: p.Protocol, Port: p.Port})
		}
	}
	first, _ := enforce.ParseFirewall(ef.Namespace, in[:min(len(in), enforce.MaxRules)])
	f.Names = first.Patterns()
	f.Firewall, f.Errs = enforce.ParseFirewall(ef.Namespace, in)
	return f
}

// MessagesOf returns the messages of a zone.
func MessagesOf(zone string, messages []string) []string {
	return slices.DeleteFunc(slices.Clone(messages), func(m string) bool { return !strings.HasPrefix(m, zone+": ") })
}

// Apply applies a part of the status of obj as owner, and changes nothing else of the object.
func Apply(ctx context.Context, c client.Client, obj client.Object, owner string, status any) error {
	gvk, err := c.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	part, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": part}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(obj.GetNamespace())
	u.SetName(obj.GetName())
	return c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(owner),
		client.ForceOwnership)
}

// Reaches reports whether a resource version is equal to or later than other. It returns false if they cannot be
// compared.
func Reaches(version, other string) bool {
	c, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && c >= 0
}
