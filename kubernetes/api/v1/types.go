package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressFirewall says where the pods of its namespace may connect to. A namespace has at most one, named "default". The rules are
// tried in their order, the first that matches decides, and what no rule matches is allowed.
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
	// status says whether they are in force.
	// +optional
	Status EgressFirewallStatus `json:"status,omitempty"`
}

// EgressFirewallList is a list of them.
//
// +kubebuilder:object:root=true
type EgressFirewallList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EgressFirewall `json:"items"`
}

// EgressFirewallSpec is the list of rules.
type EgressFirewallSpec struct {
	// egress are the rules, the first that matches decides.
	// +listType=atomic
	Egress []EgressFirewallRule `json:"egress"`
}

// EgressFirewallRuleType is Allow or Deny.
//
// The stock pattern, kept as it is for objects that are there already, is open at one end of each word ("AllowX" and "XDeny" pass).
// What it lets slip is refused by the manager.
// +kubebuilder:validation:Pattern=`^Allow|Deny$`
type EgressFirewallRuleType string

// The two types of a rule.
const (
	EgressFirewallRuleAllow EgressFirewallRuleType = "Allow"
	EgressFirewallRuleDeny  EgressFirewallRuleType = "Deny"
)

// EgressFirewallRule allows or denies one destination.
type EgressFirewallRule struct {
	// type is Allow or Deny.
	Type EgressFirewallRuleType `json:"type"`
	// ports narrow the rule to some ports; without them it is for all traffic.
	// +listType=atomic
	// +optional
	Ports []EgressFirewallPort `json:"ports,omitempty"`
	// to is the destination, said in exactly one way.
	To EgressFirewallDestination `json:"to"`
}

// EgressFirewallPort is a port of a protocol.
type EgressFirewallPort struct {
	// protocol is TCP, UDP or SCTP.
	// +kubebuilder:validation:Pattern=`^TCP|UDP|SCTP$`
	Protocol string `json:"protocol"`
	// port is the destination's port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port"`
}

// EgressFirewallDestination is where a connection goes to.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=1
type EgressFirewallDestination struct {
	// cidrSelector is an address range.
	// +optional
	CIDRSelector string `json:"cidrSelector,omitempty"`
	// dnsName is a name, or a wildcard "*.example.com" whose star stands for exactly one label: it covers "a.example.com" and neither
	// "b.a.example.com" nor "example.com".
	// +kubebuilder:validation:Pattern=`^(\*\.)?([A-Za-z0-9-]+\.)*[A-Za-z0-9-]+\.?$`
	// +optional
	DNSName string `json:"dnsName,omitempty"`
	// nodeSelector selects nodes of the cluster by their labels; an empty one selects all.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`
}

// EgressFirewallStatus says whether the rules are in force.
type EgressFirewallStatus struct {
	// status is the sum of the messages.
	// +optional
	Status string `json:"status,omitempty"`
	// messages has one from each zone, which begins with the zone's name and a colon.
	// +listType=set
	// +optional
	Messages []string `json:"messages,omitempty"`
}
