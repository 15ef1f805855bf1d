package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressFirewall defines the destinations to which the pods of its namespace may connect. A namespace has at most one,
// named "default". The rules are tried in their order, and the first match decides. Destinations that no rule matches
// are allowed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=egressfirewalls,scope=Namespaced
// +kubebuilder:printcolumn:name="EgressFirewall Status",type=string,JSONPath=".status.status"
type EgressFirewall struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the list of rules.
	Spec EgressFirewallSpec `json:"spec"`
	// status reports whether the rules are in force.
	// +optional
	Status EgressFirewallStatus `json:"status,omitempty"`
}

// EgressFirewallList is a list of EgressFirewalls.
//
// +kubebuilder:object:root=true
type EgressFirewallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EgressFirewall `json:"items"`
}

// EgressFirewallSpec is the list of rules.
type EgressFirewallSpec struct {
	// egress is the list of rules. The first match decides.
	// +listType=atomic
	Egress []EgressFirewallRule `json:"egress"`
}

// EgressFirewallRuleType is Allow or Deny.
//
// The stock pattern is kept for existing objects. It is open at one end of each word ("AllowX" and "XDeny" pass). The
// manager rejects such values.
// +kubebuilder:validation:Pattern=`^Allow|Deny$`
type EgressFirewallRuleType string

// The types of a rule.
const (
	EgressFirewallRuleAllow EgressFirewallRuleType = "Allow"
	EgressFirewallRuleDeny  EgressFirewallRuleType = "Deny"
)

// EgressFirewallRule allows or denies one destination.
type EgressFirewallRule struct {
	// type is Allow or Deny.
	Type EgressFirewallRuleType `json:"type"`
	// ports limits the rule to some ports. Without ports it applies to all traffic.
	// +listType=atomic
	// +optional
	Ports []EgressFirewallPort `json:"ports,omitempty"`
	// to is the destination. Exactly one field is set.
	To EgressFirewallDestination `json:"to"`
}

// EgressFirewallPort is a port of a protocol.
type EgressFirewallPort struct {
	// protocol is TCP, UDP or SCTP.
	// +kubebuilder:validation:Pattern=`^TCP|UDP|SCTP$`
	Protocol string `json:"protocol"`
	// port is the destination port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// EgressFirewallDestination is the destination of a connection.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type EgressFirewallDestination struct {
	// cidrSelector is an address range.
	// +optional
	CIDRSelector string `json:"cidrSelector,omitempty"`
	// dnsName is a name, or a wildcard "*.example.com" whose star matches exactly one label: it matches "a.example.com",
	// but neither "b.a.example.com" nor "example.com".
	// +kubebuilder:validation:Pattern=`^(\*\.)?([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$`
	// +optional
	DNSName string `json:"dnsName,omitempty"`
	// nodeSelector selects nodes of the cluster by their labels; an empty selector selects all nodes.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// EgressFirewallStatus reports whether the rules are in force.
type EgressFirewallStatus struct {
	// status is the summary of the messages.
	// +optional
	Status string `json:"status,omitempty"`
	// messages has one message of each zone, which begins with the name of the zone and a colon.
	// +listType=set
	// +optional
	Messages []string `json:"messages,omitempty"`
}
