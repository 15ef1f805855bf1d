package manager

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dnsv1alpha1 "github.com/nameplane/nameplane/kubernetes/api/dns/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/api/v1alpha1"
	"github.com/nameplane/nameplane/kubernetes/internal/controller/egress"
)

type (
	dnsNameStatus = dnsv1alpha1.EgressFirewallDNSNameStatus
	dnsNameItem   = dnsv1alpha1.EgressFirewallDNSNameStatusItem
	dnsNameInfo   = dnsv1alpha1.EgressFirewallDNSNameInfo
	programmed    = dnsv1alpha1.EgressFirewallDNSNameProgrammed
)

// mirrored returns the status of r in the older form, based on the previous status and the zones that must program it.
func mirrored(r *v1alpha1.DNSNameResolver, old dnsNameStatus, zones []string, now time.Time) dnsNameStatus {
	before := make(map[string]dnsNameItem, len(old.ResolvedNames))
	for _, item := range old.ResolvedNames {
		before[item.DNSName] = item
	}
	out := dnsNameStatus{Programmed: old.Programmed}
	for _, n := range r.Status.ResolvedNames {
		item := dnsNameItem{DNSName: string(n.DNSName), Info: infos(n.ResolvedAddresses), AddressesVersion: r.ResourceVersion}
		if b, ok := before[item.DNSName]; ok {
			item.Conditions = slices.Clone(b.Conditions)
			if b.AddressesVersion != "" && hasAll(b.Info, item.Info) {
				item.AddressesVersion = b.AddressesVersion
			}
		}
		if !egress.Reaches(out.AddressesVersion, item.AddressesVersion) {
			out.AddressesVersion = item.AddressesVersion
		}
		meta.SetStatusCondition(&item.Conditions, available(item.AddressesVersion, old.Programmed, zones, now))
		out.ResolvedNames = append(out.ResolvedNames, item)
	}
	return out
}

func infos(list []v1alpha1.DNSNameResolverResolvedAddress) []dnsNameInfo {
	out := make([]dnsNameInfo, len(list))
	for i, a := range list {
		out[i] = dnsNameInfo{IP: a.IP, TTL: int64(a.TTLSeconds)}
		if a.LastLookupTime != nil {
			out[i].LastLookupTime = *a.LastLookupTime
		}
	}
	return out
}

// available returns the condition that every zone has programmed a version with all addresses. Its message does not
// name the missing zones, since each one that follows would cost a write. The status lists the zones that have it.
func available(version string, said []programmed, zones []string, now time.Time) metav1.Condition {
	lacks := func(zone string) bool {
		return !slices.ContainsFunc(said,
			func(p programmed) bool { return p.Zone == zone && egress.Reaches(p.AddressesVersion, version) })
	}
	c := metav1.Condition{Type: dnsv1alpha1.ConditionAvailable, Status: metav1.ConditionFalse,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second))}
	switch {
	case len(zones) == 0:
		c.Reason, c.Message = "NoZone", "No node of the cluster is known, hence no zone"
	case slices.ContainsFunc(zones, lacks):
		c.Reason, c.Message = "NotProgrammed", "Not every zone has programmed every address"
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, "Programmed", "Every zone has programmed every address"
	}
	return c
}

func hasAll(have, want []dnsNameInfo) bool {
	ips := make(map[string]bool, len(have))
	for _, h := range have {
		ips[h.IP] = true
	}
	return !slices.ContainsFunc(want, func(w dnsNameInfo) bool { return !ips[w.IP] })
}
