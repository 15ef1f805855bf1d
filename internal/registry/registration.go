package registry

import (
	"net/netip"
	"slices"
	"time"
)

// State is whether a domain is registered.
type State string

// States. Unknown is the state of everything that could not be found out, and is never a fault of the domain.
const (
	Registered State = "registered"
	Free       State = "free"
	Unknown    State = "unknown"
)

// Source is where a registration was read.
type Source string

// Sources.
const (
	RDAP  Source = "rdap"
	WHOIS Source = "whois"
)

// Registration is what the registry, and the registrar behind it, tell about a domain: plain data, whose JSON form holds
// nothing about persons. Names are in lower case and end in a dot. What is empty was not told.
type Registration struct {
	Domain  string `json:"domain"`            // the one asked about, A-labels
	Unicode string `json:"unicode,omitempty"` // the same with U-labels, if it has any
	Suffix  string `json:"suffix,omitempty"`  // the public suffix it is registered under
	State   State  `json:"state"`
	Why     string `json:"why"` // one sentence: how State is known, or why it is not
	Source  Source `json:"source,omitempty"`
	Handle  string `json:"handle,omitempty"` // the registry's identifier

	Registrar Registrar `json:"registrar,omitzero"`
	Registry  string    `json:"registry,omitempty"` // the host that spoke for it
	Dates     Dates     `json:"dates,omitzero"`
	Statuses  []Status  `json:"statuses,omitempty"`
	// Nameservers are those of the registry's database, which its zone follows after a while.
	Nameservers []Host `json:"nameservers,omitempty"`
	DNSSEC      DNSSEC `json:"dnssec,omitzero"`

	// Confidence is how far the reading of a WHOIS text is to be trusted: high, medium or low. RDAP needs none.
	Confidence string    `json:"confidence,omitempty"`
	Asked      []Attempt `json:"asked,omitempty"`
	Problems   []string  `json:"problems,omitempty"` // what went wrong on the way; never words of a reply
}

// Registrar is the firm through which a domain is registered.
type Registrar struct {
	Name       string `json:"name,omitempty"`
	IANAID     string `json:"ianaID,omitempty"`
	URL        string `json:"url,omitempty"`
	AbuseEmail string `json:"abuseEmail,omitempty"`
	AbusePhone string `json:"abusePhone,omitempty"`
}

// Dates of a registration. The registry deletes by Expires; RegistrarExpires is what the customer paid for, and may be
// earlier, as a registry renews by itself at first.
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
	Addrs []netip.Addr `json:"addrs,omitempty"` // only those that the registry holds as glue
}

// DNSSEC is what the registry has for the DS records of the parent zone.
type DNSSEC struct {
	Known  bool  `json:"known"`  // false: not told, which is not the same as unsigned
	Signed bool  `json:"signed"` // may be true without DS and Keys: many WHOIS servers tell no more
	DS     []DS  `json:"ds,omitempty"`
	Keys   []Key `json:"keys,omitempty"` // of registries that compute DS records by themselves, as DENIC
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

// Attempt is one question to one server, kept as evidence.
type Attempt struct {
	Kind   string        `json:"kind"`            // bootstrap, rdap, whois
	Server string        `json:"server"`          // URL or host:port
	Query  string        `json:"query,omitempty"` // of WHOIS
	At     time.Time     `json:"at"`
	Took   time.Duration `json:"took"`
	Result string        `json:"result"`
	Clock  time.Time     `json:"clock,omitzero"` // what the server says that time it is, to the second
}

// Has reports whether one of the statuses has code.
func (r Registration) Has(code string) bool {
	return slices.ContainsFunc(r.Statuses, func(s Status) bool { return s.Code == code })
}
