package v1alpha

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Domain is a domain whose owner proves it with a TXT record, a text at a URL, or the delegation to nameservers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=domains,scope=Namespaced
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.domainName`
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].reason`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.registration.expiresAt`
type Domain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the name.
	// +kubebuilder:validation:Required
	Spec DomainSpec `json:"spec"`
	// status has the registration and the results of the verification. Its default has three conditions that are
	// Unknown, with the reason Pending.
	// +optional
	Status DomainStatus `json:"status,omitempty"`
}

// DomainList is a list of Domains.
//
// +kubebuilder:object:root=true
type DomainList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Domain `json:"items"`
}

// The types of conditions.
const (
	Verified        = "Verified" // one of the proofs is complete, or was until less than a day ago
	ValidDomain     = "ValidDomain"
	VerifiedDNS     = "VerifiedDNS"
	VerifiedHTTP    = "VerifiedHTTP"
	VerifiedDNSZone = "VerifiedDNSZone"
)

// The reasons of conditions.
const (
	ReasonVerified                  = "Verified"
	ReasonValid                     = "Valid"
	ReasonInvalidApex               = "InvalidApex"
	ReasonPendingVerification       = "PendingVerification"
	ReasonContentMismatch           = "VerificationRecordContentMismatch"
	ReasonRecordNotFound            = "RecordNotFound"
	ReasonUnexpectedResponse        = "UnexpectedResponse"
	ReasonInternalError             = "InternalError"
	ReasonDNSZoneNotFound           = "DNSZoneNotFound"
	ReasonDNSZoneNotReady           = "DNSZoneNotReady"
	ReasonDNSZoneNameserverMismatch = "DNSZoneNameserverMismatch"
	ReasonProofGone                 = "ProofGone" // not of Datum: it was verified, and the proof is missing for a day
)

// DomainSpec has the name.
type DomainSpec struct {
	// domainName is the name of the domain.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="domainName is immutable"
	// +kubebuilder:validation:XValidation:rule="self.contains('.')",message="domainName must have a dot"
	DomainName string `json:"domainName"`

	// desiredRegistrationRefreshAttempt is a time at which the registration is looked up again.
	// It can be moved by five minutes or more.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self >= oldSelf + duration('5m')"
	// +optional
	DesiredRegistrationRefreshAttempt *metav1.Time `json:"desiredRegistrationRefreshAttempt,omitempty"`

	// desiredVerificationRefreshAttempt is a time at which the proofs are checked again.
	// It can be moved by five minutes or more.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || self >= oldSelf + duration('5m')"
	// +optional
	DesiredVerificationRefreshAttempt *metav1.Time `json:"desiredVerificationRefreshAttempt,omitempty"`
}

// DomainStatus has the registration and the results of the verification.
type DomainStatus struct {
	// verification has the proofs of ownership, of which one is enough.
	// +optional
	Verification *DomainVerification `json:"verification,omitempty"`
	// registration is what the registry says.
	// +optional
	Registration *DomainRegistration `json:"registration,omitempty"`
	// nameservers are the nameservers to which the parent zone delegates the domain.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Nameservers []DomainNameserver `json:"nameservers,omitempty"`
	// apex is true if the domain is one that a registrar sells, and not a name below one.
	// +optional
	Apex bool `json:"apex,omitempty"`
	// conditions are Verified, ValidDomain, VerifiedDNS, VerifiedHTTP and VerifiedDNSZone.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DomainVerification has the proofs of ownership.
type DomainVerification struct {
	// dnsRecord is the TXT record that proves the ownership.
	// +optional
	DNSRecord DNSVerificationRecord `json:"dnsRecord,omitempty"`
	// httpToken is the text at a URL that proves the ownership.
	// +optional
	HTTPToken HTTPVerificationToken `json:"httpToken,omitempty"`
	// nextVerificationAttempt is when the proofs are checked next.
	// +optional
	NextVerificationAttempt metav1.Time `json:"nextVerificationAttempt,omitempty"`
	// lastVerificationAttempt is when the proofs were checked last.
	// +optional
	LastVerificationAttempt metav1.Time `json:"lastVerificationAttempt,omitempty"`
}

// DNSVerificationRecord is a record.
type DNSVerificationRecord struct {
	// name is the owner of the record.
	Name string `json:"name"`
	// type is TXT.
	Type string `json:"type"`
	// content is the text of the record.
	Content string `json:"content"`
}

// HTTPVerificationToken is a text at a URL.
type HTTPVerificationToken struct {
	// url is the URL.
	URL string `json:"url"`
	// body is the text.
	Body string `json:"body"`
}

// DomainRegistration is what the registry says. It has no personal data.
type DomainRegistration struct {
	// domain is the registered domain.
	// +optional
	Domain string `json:"domain,omitempty"`
	// registryDomainID is the identifier of the registry.
	// +optional
	RegistryDomainID string `json:"registryDomainID,omitempty"`
	// handle is the handle of the domain in RDAP.
	// +optional
	Handle string `json:"handle,omitempty"`
	// source is the protocol that answered.
	// +kubebuilder:validation:Enum=rdap;whois
	// +optional
	Source string `json:"source,omitempty"`
	// registrar is the company through which the domain is registered.
	// +optional
	Registrar *DomainRegistrar `json:"registrar,omitempty"`
	// registry is the registry.
	// +optional
	Registry *DomainRegistry `json:"registry,omitempty"`
	// createdAt is when the domain was registered.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// updatedAt is when the registration was changed last.
	// +optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// expiresAt is when the registration ends.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// statuses are the status codes of the registration.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Statuses []string `json:"statuses,omitempty"`
	// dnssec is what the registry publishes for DNSSEC.
	// +optional
	DNSSEC *DomainDNSSEC `json:"dnssec,omitempty"`
	// contacts has no personal data, and is left empty.
	// +optional
	Contacts *DomainContacts `json:"contacts,omitempty"`
	// abuse is where to report abuse.
	// +optional
	Abuse *DomainContact `json:"abuse,omitempty"`
	// nextRefreshAttempt is when the registry is asked next.
	// +optional
	NextRefreshAttempt metav1.Time `json:"nextRefreshAttempt,omitempty"`
	// lastRefreshAttempt is when the registry was asked last.
	// +optional
	LastRefreshAttempt metav1.Time `json:"lastRefreshAttempt,omitempty"`
}

// DomainRegistrar is a registrar.
type DomainRegistrar struct {
	// ianaID is its number at IANA.
	// +optional
	IANAID string `json:"ianaID,omitempty"`
	// name is its name.
	// +optional
	Name string `json:"name,omitempty"`
	// url is its page.
	// +optional
	URL string `json:"url,omitempty"`
}

// DomainRegistry is a registry.
type DomainRegistry struct {
	// name is its name, or that of the server that answered.
	// +optional
	Name string `json:"name,omitempty"`
	// url is its page.
	// +optional
	URL string `json:"url,omitempty"`
}

// DomainDNSSEC is what the registry publishes for DNSSEC.
type DomainDNSSEC struct {
	// enabled is true if the delegation is signed.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// ds are the DS records.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	DS []DomainDS `json:"ds,omitempty"`
}

// DomainDS is a DS record.
type DomainDS struct {
	// keyTag is the key tag.
	KeyTag int32 `json:"keyTag"`
	// algorithm is the number of the algorithm.
	Algorithm int32 `json:"algorithm"`
	// digestType is the number of the digest type.
	DigestType int32 `json:"digestType"`
	// digest is the digest in hexadecimal.
	Digest string `json:"digest"`
}

// DomainContacts are the contacts of a registration.
type DomainContacts struct {
	// registrant is the owner.
	// +optional
	Registrant *DomainContact `json:"registrant,omitempty"`
	// admin is the administrative contact.
	// +optional
	Admin *DomainContact `json:"admin,omitempty"`
	// tech is the technical contact.
	// +optional
	Tech *DomainContact `json:"tech,omitempty"`
}

// DomainContact is a contact.
type DomainContact struct {
	// organization is the name of the organisation.
	// +optional
	Organization string `json:"organization,omitempty"`
	// email is the address for mail.
	// +optional
	Email string `json:"email,omitempty"`
	// phone is the telephone number.
	// +optional
	Phone string `json:"phone,omitempty"`
}

// DomainNameserver is a nameserver of the domain.
type DomainNameserver struct {
	// hostname is its name.
	Hostname string `json:"hostname"`
	// ips are its addresses.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	IPs []DomainNameserverIP `json:"ips,omitempty"`
}

// DomainNameserverIP is an address of a nameserver.
type DomainNameserverIP struct {
	// address is the address.
	Address string `json:"address"`
	// registrantName is the owner of its network. It is left empty.
	// +optional
	RegistrantName string `json:"registrantName,omitempty"`
}
