package manager

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
)

// theOnly is the name an EgressFirewall must have. The schema demands it; objects from before the schema did are not looked at.
const theOnly = "default"

// namesOf are the names in the rules of a firewall that are well-formed, as a DNSNameResolver spells them. Bad rules do not take the
// good ones with them (D17). A firewall with too many rules keeps the names of those that could be ordered: its zones may still
// enforce what it said before.
func namesOf(ef *apiv1.EgressFirewall, deep bool) []string {
	if ef.Name != theOnly {
		return nil
	}
	in := inputs(ef, deep)
	f, _ := enforce.ParseFirewall(ef.Namespace, in[:min(len(in), enforce.MaxRules)])
	out := []string{}
	for _, p := range f.Patterns() {
		out = append(out, p.String())
	}
	slices.Sort(out)
	return out
}

// complaints are what is wrong with a firewall, in the order of its rules.
func complaints(ef *apiv1.EgressFirewall, deep bool) []error {
	_, errs := enforce.ParseFirewall(ef.Namespace, inputs(ef, deep))
	for i, r := range ef.Spec.Egress {
		if r.To.NodeSelector == nil {
			continue
		}
		if _, err := metav1.LabelSelectorAsSelector(r.To.NodeSelector); err != nil {
			errs = append(errs, &enforce.RuleError{Index: i, Field: "to.nodeSelector", Reason: err.Error()})
		}
	}
	slices.SortStableFunc(errs, func(a, b error) int { return ruleIndex(a) - ruleIndex(b) })
	return errs
}

func ruleIndex(err error) int {
	if e, ok := err.(*enforce.RuleError); ok {
		return e.Index
	}
	return -1
}

func inputs(ef *apiv1.EgressFirewall, deep bool) []enforce.RuleInput {
	out := make([]enforce.RuleInput, len(ef.Spec.Egress))
	for i, r := range ef.Spec.Egress {
		out[i] = enforce.RuleInput{
			Type: string(r.Type), CIDR: r.To.CIDRSelector, DNSName: r.To.DNSName, HasNodeSelector: r.To.NodeSelector != nil,
			Options: enforce.PatternOptions{Deep: deep},
		}
		for _, p := range r.Ports {
			out[i].Ports = append(out[i].Ports, enforce.PortInput{Protocol: p.Protocol, Port: p.Port})
		}
	}
	return out
}

// What zones and the cluster manager say, in the words of OVN-Kubernetes, which both it and its users look for.
const (
	applied    = "EgressFirewall Rules applied"
	notApplied = "EgressFirewall Rules not correctly applied"
	// ownZone stands where a zone says its name. A message of ours is written only when something is wrong, when the sum is
	// the same with or without it, so that a stock cluster manager that counts messages by zone is not misled.
	ownZone = "cluster-manager"
	// maxMessages keeps a firewall of a thousand bad rules from filling its own status.
	maxMessages = 20
)

// messages are complaints as they go into the status.
func messages(errs []error) []string {
	prefix := ownZone + ": " + notApplied + ": "
	var out []string
	for i, err := range errs {
		if i == maxMessages {
			return append(out, fmt.Sprintf("%s%d more rules are wrong", prefix, len(errs)-i))
		}
		if m := prefix + err.Error(); !slices.Contains(out, m) { // the list is a set
			out = append(out, m)
		}
	}
	return out
}
