package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DNSNameResolver has the addresses of one DNS name in egress rules. The cluster manager creates and deletes these
// objects, CoreDNS writes their status, and the agents that program the switches read it. Users should not edit them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dnsnameresolvers,scope=Namespaced
// +kubebuilder:metadata:annotations="api-approved.openshift.io=https://github.com/openshift/api/pull/1524"
type DNSNameResolver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the name.
	// +kubebuilder:validation:Required
	Spec DNSNameResolverSpec `json:"spec"`
	// status has the learned addresses.
	// +optional
	Status DNSNameResolverStatus `json:"status,omitempty"`
}

// DNSNameResolverList is a list of DNSNameResolvers.
//
// +kubebuilder:object:root=true
type DNSNameResolverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DNSNameResolver `json:"items"`
}

// DNSName is a name in lower case with its final dot. The pattern is at the fields, since those of spec and status
// differ.
//
// +kubebuilder:validation:MaxLength=254
type DNSName string

// DNSNameResolverSpec has the name.
type DNSNameResolverSpec struct {
	// name is a DNS name, or a wildcard "*.example.com." whose star matches exactly one label: it matches
	// "a.example.com.", but neither "b.a.example.com." nor "example.com.".
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.name is immutable"
	Name DNSName `json:"name"`
}

// DNSNameResolverStatus has the addresses that were learned from answers.
type DNSNameResolverStatus struct {
	// resolvedNames has an entry for each name that matches spec.name and was resolved.
	// +listType=map
	// +listMapKey=dnsName
	// +optional
	ResolvedNames []DNSNameResolverResolvedName `json:"resolvedNames,omitempty"`
}

// DNSNameResolverResolvedName has the addresses of one name.
type DNSNameResolverResolvedName struct {
	// conditions has one type, Degraded. It is true while the last lookup of the name failed, with its RCODE as the
	// reason.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// dnsName is the resolved name. It is spec.name itself, or a name that the wildcard in spec.name matches.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^(\*\*?\.)?([-a-z0-9_]{1,63}\.){2,}$`
	DNSName DNSName `json:"dnsName"`

	// resolvedAddresses has the addresses of the name. It may be empty.
	// +kubebuilder:validation:Required
	// +listType=map
	// +listMapKey=ip
	ResolvedAddresses []DNSNameResolverResolvedAddress `json:"resolvedAddresses"`

	// resolutionFailures is the number of failed lookups since the last successful one. At 5, and if no address is valid,
	// the entry is removed.
	// +optional
	ResolutionFailures int32 `json:"resolutionFailures,omitempty"`
}

// DNSNameResolverResolvedAddress is an address and its lifetime. It is valid until lastLookupTime + ttlSeconds, and is
// removed some seconds later unless another lookup returned it.
type DNSNameResolverResolvedAddress struct {
	// ip is the address, IPv4 or IPv6.
	// +kubebuilder:validation:Required
	IP string `json:"ip"`

	// ttlSeconds is the number of seconds for which the address is valid after lastLookupTime.
	// +kubebuilder:validation:Required
	TTLSeconds int32 `json:"ttlSeconds"`

	// lastLookupTime is the time of the last lookup that returned the address.
	// +kubebuilder:validation:Required
	LastLookupTime *metav1.Time `json:"lastLookupTime"`
}
