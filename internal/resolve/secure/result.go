package secure

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// State is the security status of data (RFC 4035 §4.3).
type State string

// The states. Data that was not requested or not answered is Unknown, never Bogus.
const (
	Secure   State = "secure"
	Insecure State = "insecure" // proven to have no chain of trust: not protected, but not wrong
	Bogus    State = "bogus"    // validating resolvers return SERVFAIL
	Unknown  State = "unknown"
)

// Cause is the reason for a state, for programs. Why has the same reason as text.
type Cause string

// The causes.
const (
	NoCause      Cause = ""
	NoDS         Cause = "no-ds"             // insecure: the parent has no DS records
	Unsigned     Cause = "unsigned"          // bogus: the parent has DS records, but the zone has no keys
	NoKey        Cause = "no-key"            // bogus: no key matches a DS record
	KeysUnsigned Cause = "keys-unsigned"     // bogus: no key that matches a DS record signs the keys
	Missing      Cause = "signature-missing" // bogus
	Expired      Cause = "expired"           // bogus
	Early        Cause = "not-yet-valid"     // bogus
	Mismatch     Cause = "signature-wrong"   // bogus: the signature does not verify, or its key is not in the zone
	BadDenial    Cause = "denial"            // bogus: there is no proof that something does not exist
	// insecure: validators need not support the algorithms; unknown: this package does not
	Algorithm  Cause = "algorithm"
	Iterations Cause = "iterations" // insecure: NSEC3 with more iterations than validators accept (RFC 9276 §3.2)
	OptOut     Cause = "opt-out"    // insecure: NSEC3 with opt-out may leave out names
	Above      Cause = "above"      // the state is that of the zone or of its parent
	NotSeen    Cause = "not-seen"   // unknown
	NoAnchor   Cause = "no-anchor"  // unknown
)

// Result is the result of Validate. It is plain data.
type Result struct {
	Question iterate.Question `json:"question"`
	At       time.Time        `json:"at"`    // the time of the validation
	State    State            `json:"state"` // the worst state of the answers of the alias chain
	Cause    Cause            `json:"cause,omitempty"`
	Why      string           `json:"why"`
	// Expires is when the first signature that the answer needs expires, if it is not renewed. It is zero if the answer
	// needs none.
	Expires   time.Time `json:"expires,omitzero"`
	ExpiresOf string    `json:"expiresOf,omitempty"` // the record set of that signature
	Zones     []Zone    `json:"zones"`               // parents come before their children
	Answers   []Answer  `json:"answers"`             // one for the name and one for each alias target
}

// Zone describes the chain of trust to a zone and its DNSSEC data.
type Zone struct {
	Name   dnsname.Name `json:"name"`
	Parent dnsname.Name `json:"parent"`
	State  State        `json:"state"` // the state of its keys; data in a secure zone can still be bogus
	Cause  Cause        `json:"cause,omitempty"`
	Why    string       `json:"why"`

	DS      []DS     `json:"ds"` // for the root: the trust anchors
	Keys    []Key    `json:"keys"`
	KeySets []KeySet `json:"keySets"` // one for each distinct set; several if the servers disagree
	// signatures made with its keys, including those of the DS records of its children
	Signatures []Signature `json:"signatures"`
	Denial     Denial      `json:"denial"`
	Child      ChildDS     `json:"child"`
}

// Signed reports whether the zone has keys, trusted or not.
func (z Zone) Signed() bool { return len(z.Keys) > 0 }

// DS is a DS record at the parent.
type DS struct {
	KeyTag     uint16       `json:"keyTag"`
	Algorithm  uint8        `json:"algorithm"`
	DigestType uint8        `json:"digestType"`
	Digest     string       `json:"digest"`
	TTL        uint32       `json:"ttl"`
	Matches    bool         `json:"matches"` // a key of the zone matches it
	From       []netip.Addr `json:"from"`    // the servers of the parent that have it
}

// Key is a DNSKEY record of a zone.
type Key struct {
	KeyTag    uint16       `json:"keyTag"`
	Algorithm uint8        `json:"algorithm"`
	Flags     uint16       `json:"flags"`
	Bits      int          `json:"bits"` // the size of the key; 0 if it is not known
	SEP       bool         `json:"sep"`
	Revoked   bool         `json:"revoked,omitempty"`
	SignsKeys bool         `json:"signsKeys"` // a valid signature of the DNSKEY set with this key was seen
	SignsZone bool         `json:"signsZone"`
	From      []netip.Addr `json:"from"`
}

// KeySet is a set of keys that several servers agree on.
type KeySet struct {
	KeyTags []uint16     `json:"keyTags"` // empty if these servers have no keys
	TTL     uint32       `json:"ttl"`
	From    []netip.Addr `json:"from"`
	State   State        `json:"state"` // whether a resolver that queries these servers can trust the keys
	Cause   Cause        `json:"cause,omitempty"`
}

// Signature is an RRSIG record, judged on its own.
type Signature struct {
	Owner      dnsname.Name `json:"owner"`
	Type       string       `json:"type"`
	KeyTag     uint16       `json:"keyTag"`
	Algorithm  uint8        `json:"algorithm"`
	Inception  time.Time    `json:"inception"`
	Expiration time.Time    `json:"expiration"`
	Valid      bool         `json:"valid"`
	Cause      Cause        `json:"cause,omitempty"`
	Problem    string       `json:"problem,omitempty"`
	From       []netip.Addr `json:"from"`
}

// The kinds of Denial.
const (
	DenialNSEC  = "NSEC"
	DenialNSEC3 = "NSEC3"
	DenialNone  = "none" // negative replies had no proof
)

// Denial describes how a zone proves that something does not exist.
type Denial struct {
	Kind       string `json:"kind"` // empty if no negative reply was seen
	Iterations uint16 `json:"iterations,omitempty"`
	Salt       string `json:"salt,omitempty"` // in hex
	OptOut     bool   `json:"optOut,omitempty"`
	// Params are the parameters of NSEC3 with the servers that use them: several if the servers differ.
	Params []NSEC3Params `json:"params,omitempty"`
	NSEC   []netip.Addr  `json:"nsec,omitempty"` // the servers that use NSEC
	OK     bool          `json:"ok"`             // all denials prove what they claim
	// Proving and Failing are the servers with a denial that proves what it claims, and with one that does not.
	Proving []netip.Addr `json:"proving,omitempty"`
	Failing []netip.Addr `json:"failing,omitempty"`
	Cause   Cause        `json:"cause,omitempty"`
	Problem string       `json:"problem,omitempty"`
	Subject string       `json:"subject,omitempty"` // the question with the problem
}

// NSEC3Params are the parameters of the NSEC3 records of some servers.
type NSEC3Params struct {
	Iterations uint16       `json:"iterations"`
	Salt       string       `json:"salt"` // in hex
	From       []netip.Addr `json:"from"`
}

// ChildDS describes the DS records that a zone requests from its parent (RFC 7344, RFC 8078).
type ChildDS struct {
	Seen    bool          `json:"seen"` // the zone was queried for the records
	Records []ChildRecord `json:"records,omitempty"`
	Delete  bool          `json:"delete,omitempty"` // the zone requests the removal of its DS records
	Problem string        `json:"problem,omitempty"`
	Pending bool          `json:"pending,omitempty"` // the DS records of the parent differ from the request
}

// ChildRecord is a CDS or CDNSKEY record.
type ChildRecord struct {
	Type       string `json:"type"`
	KeyTag     uint16 `json:"keyTag"`
	Algorithm  uint8  `json:"algorithm"`
	DigestType uint8  `json:"digestType,omitempty"` // only for CDS
	Matches    bool   `json:"matches"`              // a key of the zone matches it
	AtParent   bool   `json:"atParent"`             // the parent has the DS record
}

// Answer is the result for one name.
type Answer struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Class    iterate.Class    `json:"class"`
	State    State            `json:"state"`
	Cause    Cause            `json:"cause,omitempty"`
	Why      string           `json:"why"`
	Wildcard bool             `json:"wildcard,omitempty"` // it was expanded from a wildcard, as the signatures show
	Servers  []Server         `json:"servers,omitempty"`
}

// Server is the result for the reply of one server.
type Server struct {
	Addr  netip.Addr `json:"addr"`
	State State      `json:"state"`
	Cause Cause      `json:"cause,omitempty"`
	Why   string     `json:"why,omitempty"`
}
