package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DNSNameResolver keeps what one DNS name of egress rules resolves to. The cluster manager makes and removes these objects, CoreDNS
// fills in their status, and whoever programs the switches reads it. They are not for people to edit.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dnsnameresolvers,scope=Namespaced
// +kubebuilder:metadata:annotations="api-approved.openshift.io=https://github.com/openshift/api/pull/1524"
type DNSNameResolver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which name is looked after.
	// +kubebuilder:validation:Required
	Spec DNSNameResolverSpec `json:"spec"`
	// status says what was learned about it.
	// +optional
	Status DNSNameResolverStatus `json:"status,omitempty"`
}

// DNSNameResolverList is a list of them.
//
// +kubebuilder:object:root=true
type DNSNameResolverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DNSNameResolver `json:"items"`
}

// DNSName is a name in lower case with its dot at the end. Its pattern is at the fields, since spec and status do not have the same.
//
// +kubebuilder:validation:MaxLength=254
type DNSName string

// DNSNameResolverSpec says which name is looked after.
type DNSNameResolverSpec struct {
	// name is a DNS name, or a wildcard "*.example.com.", whose star stands for exactly one label: it covers "a.example.com." and
	// neither "b.a.example.com." nor "example.com.".
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.name is immutable"
	Name DNSName `json:"name"`
}

// DNSNameResolverStatus is what was learned from answers.
type DNSNameResolverStatus struct {
	// resolvedNames has an entry for each name that matches spec.name and was resolved.
	// +listType=map
	// +listMapKey=dnsName
	// +patchMergeKey=dnsName
	// +patchStrategy=merge
	// +optional
	ResolvedNames []DNSNameResolverResolvedName `json:"resolvedNames,omitempty" patchStrategy:"merge" patchMergeKey:"dnsName"`
}

// DNSNameResolverResolvedName is what was learned about one name.
type DNSNameResolverResolvedName struct {
	// conditions has one type, Degraded: true while the last lookup of the name failed, with its RCODE as the reason.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// dnsName is the name that was resolved. It is spec.name itself, or a name that the wildcard in spec.name covers.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:Pattern=`^(\*\*?\.)?([-a-z0-9_]{1,63}\.){2,}$`
	DNSName DNSName `json:"dnsName"`

	// resolvedAddresses are its addresses, which may be none.
	// +kubebuilder:validation:Required
	// +listType=map
	// +listMapKey=ip
	ResolvedAddresses []DNSNameResolverResolvedAddress `json:"resolvedAddresses"`

	// resolutionFailures counts lookups that failed since the last that did not. At 5, and with no address still valid, the entry goes.
	// +optional
	ResolutionFailures int32 `json:"resolutionFailures,omitempty"`
}

// DNSNameResolverResolvedAddress is an address and for how long it is one. It is valid until lastLookupTime + ttlSeconds, and
// removed some seconds later unless a lookup gave it again.
type DNSNameResolverResolvedAddress struct {
	// ip is the address, IPv4 or IPv6.
	// +kubebuilder:validation:Required
	IP string `json:"ip"`

	// ttlSeconds is for how long the address is valid from lastLookupTime on.
	// +kubebuilder:validation:Required
	TTLSeconds int32 `json:"ttlSeconds"`

	// lastLookupTime is when a lookup last gave the address.
	// +kubebuilder:validation:Required
	LastLookupTime *metav1.Time `json:"lastLookupTime"`
}
