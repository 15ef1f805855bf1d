package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressFirewallDNSName is a name in egress rules, with its addresses and whether the switches have them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=egressfirewalldnsnames,scope=Namespaced
type EgressFirewallDNSName struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the name.
	Spec EgressFirewallDNSNameSpec `json:"spec"`
	// status has the addresses of the name.
	// +optional
	Status EgressFirewallDNSNameStatus `json:"status,omitempty"`
}

// EgressFirewallDNSNameList is a list of EgressFirewallDNSNames.
//
// +kubebuilder:object:root=true
type EgressFirewallDNSNameList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EgressFirewallDNSName `json:"items"`
}

// EgressFirewallDNSNameSpec has the name.
type EgressFirewallDNSNameSpec struct {
	// name is the name in lower case with its final dot, or a wildcard "*.example.com.".
	Name string `json:"name"`
}

// EgressFirewallDNSNameStatus has the addresses of the name.
type EgressFirewallDNSNameStatus struct {
	// resolvedNames has an entry for each name that matches spec.name and was resolved.
	// +listType=map
	// +listMapKey=dnsName
	// +optional
	ResolvedNames []EgressFirewallDNSNameStatusItem `json:"resolvedNames,omitempty"`

	// addressesVersion is the largest addressesVersion of the names. Agents report it after they have programmed it. The
	// original API has neither this field nor programmed.
	// +optional
	AddressesVersion string `json:"addressesVersion,omitempty"`

	// programmed has an entry for each agent. The agent writes it by server-side apply as its own field manager. It does
	// so when addressesVersion is larger than in its entry, and the switch has confirmed all addresses of that version of
	// the DNSNameResolver.
	// +listType=map
	// +listMapKey=zone
	// +optional
	Programmed []EgressFirewallDNSNameProgrammed `json:"programmed,omitempty"`
}

// EgressFirewallDNSNameStatusItem has the addresses of one name.
type EgressFirewallDNSNameStatusItem struct {
	// dnsName is the resolved name: spec.name, or a name that the wildcard matches.
	DNSName string `json:"dnsName"`
	// info has the addresses.
	// +listType=map
	// +listMapKey=ip
	Info []EgressFirewallDNSNameInfo `json:"info"`
	// addressesVersion is the resource version of the DNSNameResolver in which the manager first saw the newest of the
	// addresses. It does not change with their lifetimes.
	// +optional
	AddressesVersion string `json:"addressesVersion,omitempty"`
	// conditions has one type, Available. It is true if and only if every agent has programmed every address of the name.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// EgressFirewallDNSNameInfo is an address and its lifetime.
type EgressFirewallDNSNameInfo struct {
	// ip is the address.
	IP string `json:"ip"`
	// ttl is the number of seconds for which the address is valid after lastLookupTime.
	TTL int64 `json:"ttl"`
	// lastLookupTime is the time of the last lookup that returned the address.
	LastLookupTime metav1.Time `json:"lastLookupTime"`
}

// EgressFirewallDNSNameProgrammed is the report of one agent.
type EgressFirewallDNSNameProgrammed struct {
	// zone is the zone of the agent, as in the messages of an EgressFirewall.
	Zone string `json:"zone"`
	// addressesVersion is the resource version of the DNSNameResolver whose addresses, and all earlier ones, are
	// programmed.
	AddressesVersion string `json:"addressesVersion"`
}

// ConditionAvailable is the type of the condition that every agent has programmed every address.
const ConditionAvailable = "Available"
