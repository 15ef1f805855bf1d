package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HostnameReport says whether a hostname of the routes and Ingresses of its namespace works, and what to do if not.
// nameplane-service creates, writes and deletes these objects. Users should not edit them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=hostnamereports,scope=Namespaced,shortName=hnr
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.status.hostname`
// +kubebuilder:printcolumn:name="Verdict",type=string,JSONPath=`.status.verdict`
// +kubebuilder:printcolumn:name="Broken",type=string,JSONPath=`.status.firstBroken`
// +kubebuilder:printcolumn:name="DNS",type=string,JSONPath=`.status.conditions[?(@.type=="DNSReady")].status`
// +kubebuilder:printcolumn:name="TLS",type=string,JSONPath=`.status.conditions[?(@.type=="TLSReady")].status`
// +kubebuilder:printcolumn:name="Checked",type=date,JSONPath=`.status.lastChecked`
// +kubebuilder:printcolumn:name="Summary",type=string,priority=1,JSONPath=`.status.summary`
type HostnameReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status has the results of the last check.
	// +optional
	Status HostnameReportStatus `json:"status,omitempty"`
}

// HostnameReportList is a list of HostnameReports.
//
// +kubebuilder:object:root=true
type HostnameReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HostnameReport `json:"items"`
}

// The types of conditions.
const (
	RouteReady        = "RouteReady"        // the class, the Gateway, the listener and the route are accepted
	DNSReady          = "DNSReady"          // the records of the zone lead to the service
	DNSSafe           = "DNSSafe"           // no cache can hold an older answer
	TLSReady          = "TLSReady"          // every address has a valid certificate
	BackendReady      = "BackendReady"      // every address answers, and endpoints are ready
	OwnershipVerified = "OwnershipVerified" // the owner of the domain has proved it
	Current           = "Current"           // the results are those of the last check
)

// The limits of a status. The schema has the same.
const (
	MaxFindings = 32
	MaxTargets  = 16
	MaxText     = 1024
)

// HostnameReportStatus has the results of the last check.
type HostnameReportStatus struct {
	// hostname is the hostname that a listener and a route have in common. "*.example.com" stands for all names below.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Hostname string `json:"hostname,omitempty"`

	// verdict says whether the hostname works.
	// +kubebuilder:validation:Enum=working;working soon;not working;no verdict
	// +optional
	Verdict string `json:"verdict,omitempty"`

	// summary is the verdict in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Summary string `json:"summary,omitempty"`

	// firstBroken is the first broken link, in the order class, gateway, listener, route, ownership, DNS, certificate,
	// backend. It is empty if no link is broken.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FirstBroken string `json:"firstBroken,omitempty"`

	// safeAt is the time from which on no cache can hold an older answer. It is empty while the records are not right.
	// +optional
	SafeAt *metav1.Time `json:"safeAt,omitempty"`

	// lastChecked is the time of the check that found these results. If the condition Current is False, later checks
	// could not decide.
	// +optional
	LastChecked *metav1.Time `json:"lastChecked,omitempty"`

	// observedGeneration is the generation of the first owner of the report that was checked.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// targets are the host names and addresses to which the hostname must lead.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=255
	// +listType=atomic
	// +optional
	Targets []string `json:"targets,omitempty"`

	// findings are the checks that did not pass, the worst first.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Findings []HostnameFinding `json:"findings,omitempty"`

	// conditions are RouteReady, DNSReady, DNSSafe, TLSReady, BackendReady, OwnershipVerified and Current. The reason of
	// one that is not True is the ID of a check, or a word if no check applies.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostnameFinding is a check that did not pass.
type HostnameFinding struct {
	// id is the ID of the check, such as SVC20. "nameplane checks SVC20" explains it.
	// +kubebuilder:validation:MaxLength=16
	ID string `json:"id"`

	// severity is critical, error, warning, notice or info, or unknown if the check could not be decided.
	// +kubebuilder:validation:Enum=critical;error;warning;notice;info;unknown
	Severity string `json:"severity"`

	// subject is the object, name or address that was checked.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Subject string `json:"subject,omitempty"`

	// words say what was found.
	// +kubebuilder:validation:MaxLength=1024
	Words string `json:"words"`

	// fix says what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Fix string `json:"fix,omitempty"`

	// actor is the party that can do it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Actor string `json:"actor,omitempty"`

	// visibleBy is the time at which everyone sees a fix that is made now.
	// +optional
	VisibleBy *metav1.Time `json:"visibleBy,omitempty"`
}
