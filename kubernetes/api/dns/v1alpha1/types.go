package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressFirewallDNSName is a name of egress rules, what it resolves to, and whether the switches know.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=egressfirewalldnsnames,scope=Namespaced
type EgressFirewallDNSName struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which name.
	Spec EgressFirewallDNSNameSpec `json:"spec"`
	// status says what it resolves to.
	// +optional
	Status EgressFirewallDNSNameStatus `json:"status,omitempty"`
}

// EgressFirewallDNSNameList is a list of them.
//
// +kubebuilder:object:root=true
type EgressFirewallDNSNameList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EgressFirewallDNSName `json:"items"`
}

// EgressFirewallDNSNameSpec says which name.
type EgressFirewallDNSNameSpec struct {
	// name is the name in lower case with its dot at the end, or a wildcard "*.example.com.".
	Name string `json:"name"`
}

// EgressFirewallDNSNameStatus says what the name resolves to.
type EgressFirewallDNSNameStatus struct {
	// resolvedNames has an entry for each name that matches spec.name and was resolved.
	// +listType=map
	// +listMapKey=dnsName
	// +optional
	ResolvedNames []EgressFirewallDNSNameStatusItem `json:"resolvedNames,omitempty"`

	// addressesVersion is the largest of those of the names; agents report it back when they have programmed it. The source
	// document has neither this nor programmed.
	// +optional
	AddressesVersion string `json:"addressesVersion,omitempty"`

	// programmed has an entry of each agent, which the agent writes by server-side apply as its own field manager, when
	// addressesVersion is larger than in its entry and the switch has confirmed all addresses of the DNSNameResolver of that version.
	// +listType=map
	// +listMapKey=zone
	// +optional
	Programmed []EgressFirewallDNSNameProgrammed `json:"programmed,omitempty"`
}

// EgressFirewallDNSNameStatusItem is what one name resolves to.
type EgressFirewallDNSNameStatusItem struct {
	// dnsName is the name that was resolved: spec.name, or a name that the wildcard covers.
	DNSName string `json:"dnsName"`
	// info are its addresses.
	// +listType=map
	// +listMapKey=ip
	Info []EgressFirewallDNSNameInfo `json:"info"`
	// addressesVersion is the resource version of the DNSNameResolver in which the manager first saw the newest of the addresses.
	// It does not change with their lifetimes.
	// +optional
	AddressesVersion string `json:"addressesVersion,omitempty"`
	// conditions has one type, Available: true exactly when every agent has programmed every address of the name.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EgressFirewallDNSNameInfo is an address and for how long it is one.
type EgressFirewallDNSNameInfo struct {
	// ip is the address.
	IP string `json:"ip"`
	// ttl is for how many seconds it is valid from lastLookupTime on.
	TTL int64 `json:"ttl"`
	// lastLookupTime is when a lookup last gave the address.
	LastLookupTime metav1.Time `json:"lastLookupTime"`
}

// EgressFirewallDNSNameProgrammed is the word of one agent.
type EgressFirewallDNSNameProgrammed struct {
	// zone is the agent's, as in the messages of an EgressFirewall.
	Zone string `json:"zone"`
	// addressesVersion is the resource version of the DNSNameResolver whose addresses, and those before, are programmed.
	AddressesVersion string `json:"addressesVersion"`
}

// ConditionAvailable is the type of the condition that tells whether every agent has programmed every address.
const ConditionAvailable = "Available"
