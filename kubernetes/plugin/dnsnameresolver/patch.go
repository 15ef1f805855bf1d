package dnsnameresolver

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/fetch"
	"github.com/nameplane/nameplane/kubernetes/internal/enforce/learn"
)

// degraded is the only condition type of a resolved name.
const degraded = "Degraded"

// fromStatus parses the stored entries. It skips invalid addresses, which the next write of their entry removes.
func fromStatus(s v1alpha1.DNSNameResolverStatus) []learn.Entry {
	out := make([]learn.Entry, 0, len(s.ResolvedNames))
	for _, n := range s.ResolvedNames {
		e := learn.Entry{Name: string(n.DNSName), Failures: n.ResolutionFailures}
		for _, a := range n.ResolvedAddresses {
			addr, err := netip.ParseAddr(a.IP)
			if err != nil {
				continue
			}
			h := learn.StoredAddress{Addr: addr, TTL: a.TTLSeconds}
			if a.LastLookupTime != nil {
				h.Last = a.LastLookupTime.UTC()
			}
			e.Addrs = append(e.Addrs, h)
		}
		if c := meta.FindStatusCondition(n.Conditions, degraded); c != nil {
			e.Degraded = learn.Condition{Failed: c.Status == metav1.ConditionTrue, Reason: c.Reason, Message: c.Message,
				Since: c.LastTransitionTime.UTC()}
		}
		out = append(out, e)
	}
	return out
}

// toStatus returns the stored form of an entry. It keeps the other fields of old.
func toStatus(e learn.Entry, old v1alpha1.DNSNameResolverResolvedName) v1alpha1.DNSNameResolverResolvedName {
	n := *old.DeepCopy()
	n.DNSName, n.ResolutionFailures = v1alpha1.DNSName(e.Name), e.Failures
	n.ResolvedAddresses = make([]v1alpha1.DNSNameResolverResolvedAddress, 0, len(e.Addrs))
	for _, h := range e.Addrs {
		n.ResolvedAddresses = append(n.ResolvedAddresses, v1alpha1.DNSNameResolverResolvedAddress{
			IP: h.Addr.String(), TTLSeconds: h.TTL, LastLookupTime: &metav1.Time{Time: h.Last}})
	}
	if !e.Degraded.Stored() {
		return n
	}
	c := metav1.Condition{Type: degraded, Status: metav1.ConditionFalse, Reason: e.Degraded.Reason,
		Message: e.Degraded.Message, LastTransitionTime: metav1.Time{Time: e.Degraded.Since}}
	if e.Degraded.Failed {
		c.Status = metav1.ConditionTrue
	}
	n.Conditions = slices.DeleteFunc(n.Conditions, func(c metav1.Condition) bool { return c.Type == degraded })
	n.Conditions = slices.Insert(n.Conditions, 0, c) // readers of the API use the first condition
	return n
}

type operation = fetch.Operation

const listPath = "/status/resolvedNames"

// diff returns the operations that change the status of live from have to want. It adds a test for each entry that it
// removes or shortens. If another client changed such an entry in between, the write fails and nothing is lost.
// Additions of other clients do not conflict. If two clients add the same name at once, the API server rejects one of
// them, because names are keys of the list.
func diff(live *v1alpha1.DNSNameResolver, have, want []learn.Entry) []operation {
	stored := live.Status.ResolvedNames
	if len(stored) == 0 {
		return replaceAll(live, want)
	}
	// Names of objects are reused. Addresses learned for one pattern must never enter the status of another one.
	changes := []operation{{Op: "test", Path: "/metadata/uid", Value: live.UID}}
	var removals, additions []operation
	wanted := indexByName(want)
	for i, h := range have {
		at := fmt.Sprintf("%s/%d", listPath, i)
		test := operation{Op: "test", Path: at, Value: stored[i]}
		w, ok := wanted[h.Name]
		switch {
		case !ok:
			// last entry first, so that the other indexes stay valid
			removals = append([]operation{test, {Op: "remove", Path: at}}, removals...)
		case equal(h, want[w]):
		default:
			longer := extend(at, stored[i], h, want[w])
			if longer == nil {
				longer = []operation{test, {Op: "replace", Path: at, Value: toStatus(want[w], stored[i])}}
			}
			changes = append(changes, longer...)
		}
	}
	had := indexByName(have)
	for i, w := range want {
		if _, ok := had[w.Name]; ok {
			continue
		}
		at := listPath + "/-"
		if i == 0 {
			at = listPath + "/0"
		}
		additions = append(additions, operation{Op: "add", Path: at,
			Value: toStatus(w, v1alpha1.DNSNameResolverResolvedName{})})
	}
	return slices.Concat(changes, removals, additions)
}

// extend returns the operations for an entry whose addresses only get later ends or additional addresses. It returns
// nil for any other change. The operations test only the addresses that they change, so two replicas that extend the
// same address at once both succeed. A replica whose clients received a later end than the stored one then sees that,
// and writes again.
func extend(at string, stored v1alpha1.DNSNameResolverResolvedName, have, want learn.Entry) []operation {
	n := len(have.Addrs)
	if have.Failures != want.Failures || have.Degraded != want.Degraded || n == 0 || n != len(stored.ResolvedAddresses) ||
		n > len(want.Addrs) {
		return nil
	}
	ops := []operation{{Op: "test", Path: at + "/dnsName", Value: stored.DNSName}}
	addrs := toStatus(want, stored).ResolvedAddresses
	for i, h := range have.Addrs {
		w := want.Addrs[i]
		path := fmt.Sprintf("%s/resolvedAddresses/%d", at, i)
		switch {
		case w == h:
		case w.Addr != h.Addr || w.Until().Before(h.Until()):
			return nil
		default:
			ops = append(ops, operation{Op: "test", Path: path + "/ip", Value: stored.ResolvedAddresses[i].IP},
				operation{Op: "replace", Path: path, Value: addrs[i]})
		}
	}
	for _, a := range addrs[n:] {
		ops = append(ops, operation{Op: "add", Path: at + "/resolvedAddresses/-", Value: a})
	}
	return ops
}

// firstApply returns the server-side apply patch for an object without entries. Apply treats names and addresses as
// keys: if two replicas learned the same name at once, both succeed, and the result is the union. It is not used for
// wildcards or for later writes. The API server records the applied fields per replica in the metadata, and that record
// is larger than the status.
func firstApply(live *v1alpha1.DNSNameResolver, want []learn.Entry) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "DNSNameResolver",
		// Names of objects are reused; see diff.
		"metadata": map[string]any{"namespace": live.Namespace, "name": live.Name, "uid": live.UID},
		"status":   v1alpha1.DNSNameResolverStatus{ResolvedNames: toStatusList(live, want)},
	}
}

// replaceAll returns the operations that replace the list, unless the object changed at all. It is used for the first
// write to a wildcard, which has nothing else to test, and after finer tests failed too often.
func replaceAll(live *v1alpha1.DNSNameResolver, want []learn.Entry) []operation {
	return []operation{
		{Op: "test", Path: "/metadata/resourceVersion", Value: live.ResourceVersion},
		{Op: "add", Path: "/status", Value: v1alpha1.DNSNameResolverStatus{ResolvedNames: toStatusList(live, want)}},
	}
}

// toStatusList returns the stored form of want.
func toStatusList(live *v1alpha1.DNSNameResolver, want []learn.Entry) []v1alpha1.DNSNameResolverResolvedName {
	out := make([]v1alpha1.DNSNameResolverResolvedName, 0, len(want))
	old := make(map[string]v1alpha1.DNSNameResolverResolvedName, len(live.Status.ResolvedNames))
	for _, n := range live.Status.ResolvedNames {
		old[string(n.DNSName)] = n
	}
	for _, w := range want {
		out = append(out, toStatus(w, old[w.Name]))
	}
	return out
}

// indexByName returns the index of each entry by name. A map is needed because queries wait while a status with a
// thousand entries is compared.
func indexByName(entries []learn.Entry) map[string]int {
	out := make(map[string]int, len(entries))
	for i, e := range entries {
		out[e.Name] = i
	}
	return out
}

func equal(a, b learn.Entry) bool {
	return a.Name == b.Name && a.Failures == b.Failures && a.Degraded == b.Degraded && slices.Equal(a.Addrs, b.Addrs)
}
