package agent

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/nameplane/nameplane/internal/dnsname"
	apiv1 "github.com/nameplane/nameplane/kubernetes/api/v1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/node"
)

// unseen returns a report for a namespace that does not exist. Otherwise a mistyped namespace without a firewall would
// be reported as open. If the caller may not read namespaces, unseen returns false.
func unseen(ctx context.Context, c client.Reader, q Question) (Report, bool) {
	err := c.Get(ctx, client.ObjectKey{Name: q.Namespace}, namespaceMetadata())
	if !apierrors.IsNotFound(err) {
		return Report{}, false
	}
	return Report{Namespace: q.Namespace, Destination: q.destination(),
		Unknown: fmt.Sprintf("there is no namespace %s", q.Namespace)}, true
}

// serviceCIDRs returns the networks of services. Kubernetes has them since 1.33. In older clusters, and if the caller
// may not read them, it returns none.
func serviceCIDRs(ctx context.Context, c client.Reader) ([]client.Object, error) {
	var list networkingv1.ServiceCIDRList
	err := c.List(ctx, &list)
	// explain is run by people with few permissions. A missing detail must not hide the rest of the report.
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || meta.IsNoMatchError(err) ||
		runtime.IsNotRegisteredError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list ServiceCIDRs: %w", err)
	}
	var out []client.Object
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// ofService reports whether an address belongs to a service. Rules do not apply to it: OVN replaces it with that of an
// endpoint before rules match.
func (in reading) ofService(a netip.Addr) bool {
	return in.policy.Cluster.Owner(a) == learn.OwnerService
}

const service = "%s is a service address, and rules match the address after translation; " +
	"ask about the addresses of the service's endpoints"

// warn adds warnings about addresses that may end soon, or are not on all nodes.
func (r *Report) warn(a netip.Addr, answer Answer, now time.Time) {
	for _, l := range answer.Learned {
		switch {
		case l.Failing != "":
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s: lookups of %s fail: %s; it is removed after some more failures unless a lookup succeeds", a,
					l.Name, l.Failing))
		case l.Until.Before(now):
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s: learned for %s, ended at %s; it is removed soon unless it is learned again", a, l.Name,
					l.Until.Format(time.RFC3339)))
		}
	}
	for _, n := range answer.Nodes {
		switch {
		case n.Error != "":
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: the agent %s could not be asked: %s", a, n.Agent, n.Error))
		case n.Written():
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("%s: written by the agent %s, and not confirmed by its switch now", a, n.Agent))
		case !n.Programmed:
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s: not programmed by the agent %s", a, n.Agent))
		}
	}
}

// failing returns the reason for which a name is Degraded, or an empty string.
func failing(n v1alpha1.DNSNameResolverResolvedName) string {
	c := meta.FindStatusCondition(n.Conditions, "Degraded")
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("%s since %s", c.Reason, c.LastTransitionTime.UTC().Format(time.RFC3339))
}

// unnamed warns of names without an object: their addresses are unknown here, and rules with them seem to match
// nothing.
func (r *Report) unnamed(resolvers []v1alpha1.DNSNameResolver, fw enforce.Firewall, namespace string) {
	have := make(map[string]bool, len(resolvers))
	for i := range resolvers {
		have[string(resolvers[i].Spec.Name)] = true
	}
	without := slices.DeleteFunc(fw.Patterns(), func(p enforce.Pattern) bool { return have[p.String()] })
	if len(without) == 0 {
		return
	}
	text := fmt.Sprintf("the namespace %s has no DNSNameResolver of %s", namespace, without[0])
	if n := len(without) - 1; n > 0 {
		text += fmt.Sprintf(", and of %d more names of rules", n)
	}
	r.Warnings = append(r.Warnings, text+": does the manager run, and is it the right namespace?")
}

// unlearned returns the text about a name without known addresses.
func unlearned(fw enforce.Firewall, name dnsname.Name, resolvers []v1alpha1.DNSNameResolver) string {
	var all, by []string
	var patterns []enforce.Pattern
	for _, r := range fw.Rules {
		switch {
		case r.Kind == enforce.ByName && r.Pattern.Matches(name):
			by = append(by, r.String())
			patterns = append(patterns, r.Pattern)
		case r.Kind == enforce.ByCIDR && r.CIDR.Bits() == 0 && len(by) == 0:
			all = append(all, r.String())
		}
	}
	if len(by) == 0 {
		return fmt.Sprintf("no rule names %s, and its addresses are not known here; ask about an address", name)
	}
	out := fmt.Sprintf("no address of %s is known; addresses that are not refused are learned when a pod looks up "+
		"the name. Then these rules match: %s", name, strings.Join(by, "; "))
	if len(all) > 0 {
		out += fmt.Sprintf(". An earlier rule matches all addresses: %s", strings.Join(all, "; "))
	}
	for i := range resolvers {
		if slices.ContainsFunc(patterns,
			func(p enforce.Pattern) bool { return p.String() == string(resolvers[i].Spec.Name) }) {
			out += objectHint(&resolvers[i], name)
		}
	}
	return out
}

// objectHint returns what an object says about a name that has no addresses in it.
func objectHint(r *v1alpha1.DNSNameResolver, name dnsname.Name) string {
	out := ""
	for _, n := range r.Status.ResolvedNames {
		why := failing(n)
		switch {
		case n.DNSName == r.Spec.Name && string(n.DNSName) != name.String() && len(n.ResolvedAddresses) > 0:
			out += fmt.Sprintf(". DNSNameResolver %s/%s has %d addresses of names that did not fit: ask about an address",
				r.Namespace, r.Name, len(n.ResolvedAddresses))
		case string(n.DNSName) == name.String() && why != "":
			out += fmt.Sprintf(". Lookups of it fail: %s", why)
		}
	}
	return out
}

// status adds the zones in which a firewall is in force: agents report that after their switch has confirmed it. It
// warns if a zone reports that it is not. Errors in rules are the same in all zones, and are reported already.
func (r *Report) status(o objects, namespace string, bad []error) {
	i := slices.IndexFunc(o.firewalls,
		func(f apiv1.EgressFirewall) bool { return f.Namespace == namespace && f.Name == egress.Name })
	if i < 0 {
		return
	}
	said := map[string]bool{}
	for _, m := range o.firewalls[i].Status.Messages {
		zone, what, _ := strings.Cut(m, ": ")
		said[zone] = true
		switch {
		case zone == egress.ManagerZone && len(bad) > 0 &&
			(strings.HasSuffix(what, egress.MoreRules) ||
				slices.ContainsFunc(bad, func(err error) bool { return strings.HasSuffix(what, ": "+err.Error()) })):
		case what == egress.Applied || m == message(zone, bad, nil):
			r.InForce = append(r.InForce, zone)
		case strings.Contains(what, egress.NotApplied):
			r.Warnings = append(r.Warnings, m)
		}
	}
	for i := range o.nodes {
		zone := node.Zone(&o.nodes[i])
		if !said[zone] {
			r.Silent = append(r.Silent, zone)
		}
	}
	r.InForce, r.Silent = sortedOnce(r.InForce), sortedOnce(r.Silent)
}
