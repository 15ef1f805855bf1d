package registry

import (
	"net/netip"
	"slices"
	"time"
)

// State says whether a domain is registered.
type State string

// The states. Unknown means that the state could not be determined. It is never a fault of the domain.
const (
	Registered State = "registered"
	Free       State = "free"
	Unknown    State = "unknown"
)

// Source is the protocol from which a registration was read.
type Source string

// The sources.
const (
	RDAP  Source = "rdap"
	WHOIS Source = "whois"
)

// Registration has the data of the registry and the registrar about a domain. It has no personal data. Names are in
// lower case and end with a dot. Empty fields were not in the replies.
type Registration struct {
	Domain  string `json:"domain"`            // the queried domain, with A-labels
	Unicode string `json:"unicode,omitempty"` // the same with U-labels, if it has any
	Suffix  string `json:"suffix,omitempty"`  // the public suffix above it
	State   State  `json:"state"`
	Why     string `json:"why"` // one sentence: the source of State, or why it is unknown
	Source  Source `json:"source,omitempty"`
	Handle  string `json:"handle,omitempty"` // the registry's identifier

	Registrar Registrar `json:"registrar,omitzero"`
	Registry  string    `json:"registry,omitempty"` // the host that answered for the registry
	Dates     Dates     `json:"dates,omitzero"`
	Statuses  []Status  `json:"statuses,omitempty"`
	// Nameservers are those of the registry's database. The zone of the registry follows the database with a delay.
	Nameservers []Host `json:"nameservers,omitempty"`
	DNSSEC      DNSSEC `json:"dnssec,omitzero"`

	// Confidence says how reliable the interpretation of a WHOIS text is: high, medium or low. It is empty for RDAP.
	Confidence string    `json:"confidence,omitempty"`
	Asked      []Attempt `json:"asked,omitempty"`
	Problems   []string  `json:"problems,omitempty"` // what went wrong during the lookup; never text from a reply
}

// Registrar is the company through which a domain is registered.
type Registrar struct {
	Name       string `json:"name,omitempty"`
	IANAID     string `json:"ianaID,omitempty"`
	URL        string `json:"url,omitempty"`
	AbuseEmail string `json:"abuseEmail,omitempty"`
	AbusePhone string `json:"abusePhone,omitempty"`
}

// Dates are the dates of a registration. The registry deletes the domain after Expires. RegistrarExpires is the date
// that the customer paid for. It may be earlier, because a registry first renews automatically.
type Dates struct {
	Created          time.Time `json:"created,omitzero"`
	Updated          time.Time `json:"updated,omitzero"`
	Transferred      time.Time `json:"transferred,omitzero"`
	Expires          time.Time `json:"expires,omitzero"`
	RegistrarExpires time.Time `json:"registrarExpires,omitzero"`
}

// Host is a name server.
type Host struct {
	Name  string       `json:"name"`
	Addrs []netip.Addr `json:"addrs,omitempty"` // only those that the registry has as glue
}

// DNSSEC has the registry's data for the DS records in the parent zone.
type DNSSEC struct {
	Known  bool  `json:"known"`  // false: not in the reply, which does not mean unsigned
	Signed bool  `json:"signed"` // may be true without DS and Keys: many WHOIS servers send neither
	DS     []DS  `json:"ds,omitempty"`
	Keys   []Key `json:"keys,omitempty"` // for registries that compute the DS records, such as DENIC
}

// DS is the data of a DS record. Digest is in upper case.
type DS struct {
	KeyTag     uint16 `json:"keyTag"`
	Algorithm  uint8  `json:"algorithm"`
	DigestType uint8  `json:"digestType"`
	Digest     string `json:"digest"`
}

// Key is the data of a DNSKEY record. PublicKey is in base64.
type Key struct {
	Flags     uint16 `json:"flags"`
	Protocol  uint8  `json:"protocol"`
	Algorithm uint8  `json:"algorithm"`
	PublicKey string `json:"publicKey"`
}

// Attempt is one query to one server, kept as evidence.
type Attempt struct {
	Kind   string        `json:"kind"`            // bootstrap, rdap, whois
	Server string        `json:"server"`          // URL or host:port
	Query  string        `json:"query,omitempty"` // only for WHOIS
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took"`
	Result string        `json:"result"`
	Clock  time.Time     `json:"clock,omitzero"` // the Date header of the server
}

// Has reports whether the domain has the status code.
func (r Registration) Has(code string) bool {
	return slices.ContainsFunc(r.Statuses, func(s Status) bool { return s.Code == code })
}
