package secure

import (
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

// State is how far something can be trusted (RFC 4035 §4.3).
type State string

// The states. What was not asked for or not answered is Unknown, and never Bogus.
const (
	Secure   State = "secure"
	Insecure State = "insecure" // shown to be without a chain of trust: not protected, and not wrong
	Bogus    State = "bogus"    // validating resolvers answer SERVFAIL
	Unknown  State = "unknown"
)

// Cause is why something is in its state, for programs; Why says it in words.
type Cause string

// The causes.
const (
	NoCause      Cause = ""
	NoDS         Cause = "no-ds"             // insecure: the parent has none
	Unsigned     Cause = "unsigned"          // bogus: the parent has DS records, the zone no keys
	NoKey        Cause = "no-key"            // bogus: no key fits any DS record
	KeysUnsigned Cause = "keys-unsigned"     // bogus: no key that fits a DS record signs the keys
	Missing      Cause = "signature-missing" // bogus
	Expired      Cause = "expired"           // bogus
	Early        Cause = "not-yet-valid"     // bogus
	Mismatch     Cause = "signature-wrong"   // bogus: does not verify, or is of a key that is not in the zone
	BadDenial    Cause = "denial"            // bogus: it is not proven that something does not exist
	Algorithm    Cause = "algorithm"         // insecure: only algorithms that nobody need know; unknown: we do not
	Iterations   Cause = "iterations"        // insecure: NSEC3 with more rounds than validators do (RFC 9276 §3.2)
	OptOut       Cause = "opt-out"           // insecure: NSEC3 that leaves out names
	Above        Cause = "above"             // as the zone, or the zone above it
	NotSeen      Cause = "not-seen"          // unknown
	NoAnchor     Cause = "no-anchor"         // unknown
)

// Result is what Validate finds: plain data.
type Result struct {
	Question iterate.Question `json:"question"`
	At       time.Time        `json:"at"`    // the moment it holds for
	State    State            `json:"state"` // of the answer with all its aliases: that of the worst
	Cause    Cause            `json:"cause,omitempty"`
	Why      string           `json:"why"`
	// Expires is when the first signature ends that the answer needs, if it is not renewed; zero if it needs none.
	Expires   time.Time `json:"expires,omitzero"`
	ExpiresOf string    `json:"expiresOf,omitempty"` // the set that it signs
	Zones     []Zone    `json:"zones"`               // a zone comes behind its parent
	Answers   []Answer  `json:"answers"`             // of the name, and of each that aliases lead to
}

// Zone is the chain of trust to a zone, and what was seen of its signing.
type Zone struct {
	Name   dnsname.Name `json:"name"`
	Parent dnsname.Name `json:"parent"`
	State  State        `json:"state"` // of its keys; data can be bogus in a secure zone
	Cause  Cause        `json:"cause,omitempty"`
	Why    string       `json:"why"`

	DS         []DS        `json:"ds"` // of the root: the anchors
	Keys       []Key       `json:"keys"`
	KeySets    []KeySet    `json:"keySets"`    // the keys as servers have them; more than one if they do not agree
	Signatures []Signature `json:"signatures"` // by its keys, those of DS records of its children included
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
	Matches    bool         `json:"matches"` // a key of the zone
	From       []netip.Addr `json:"from"`    // the servers of the parent that have it
}

// Key is a DNSKEY record of a zone.
type Key struct {
	KeyTag    uint16       `json:"keyTag"`
	Algorithm uint8        `json:"algorithm"`
	Flags     uint16       `json:"flags"`
	Bits      int          `json:"bits"` // the size of the key; 0: cannot be told
	SEP       bool         `json:"sep"`
	Revoked   bool         `json:"revoked,omitempty"`
	SignsKeys bool         `json:"signsKeys"` // with a signature that was seen and fits
	SignsZone bool         `json:"signsZone"`
	From      []netip.Addr `json:"from"`
}

// KeySet is a set of keys that some servers agree on.
type KeySet struct {
	KeyTags []uint16     `json:"keyTags"` // none: these servers have no keys
	TTL     uint32       `json:"ttl"`
	From    []netip.Addr `json:"from"`
	State   State        `json:"state"` // whether a resolver that asks these servers can trust the keys
	Cause   Cause        `json:"cause,omitempty"`
}

// Signature is an RRSIG record, judged by itself.
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
	DenialNone  = "none" // negative replies were seen, and had no proof
)

// Denial is how a zone proves that something does not exist.
type Denial struct {
	Kind       string `json:"kind"` // empty: no negative reply was seen
	Iterations uint16 `json:"iterations,omitempty"`
	Salt       string `json:"salt,omitempty"` // in hex
	OptOut     bool   `json:"optOut,omitempty"`
	OK         bool   `json:"ok"` // all that were seen prove what they say
	Cause      Cause  `json:"cause,omitempty"`
	Problem    string `json:"problem,omitempty"`
	Subject    string `json:"subject,omitempty"` // the question that has the problem
}

// ChildDS is what a zone wants its parent to have for DS (RFC 7344, RFC 8078).
type ChildDS struct {
	Seen    bool   `json:"seen"` // it was asked for
	Records []Wish `json:"records,omitempty"`
	Delete  bool   `json:"delete,omitempty"` // it asks for no DS
	Problem string `json:"problem,omitempty"`
	Pending bool   `json:"pending,omitempty"` // the parent has other DS records than it asks for
}

// Wish is a CDS or CDNSKEY record.
type Wish struct {
	Type       string `json:"type"`
	KeyTag     uint16 `json:"keyTag"`
	Algorithm  uint8  `json:"algorithm"`
	DigestType uint8  `json:"digestType,omitempty"` // of CDS
	Matches    bool   `json:"matches"`              // a key of the zone
	AtParent   bool   `json:"atParent"`             // a DS record that there is
}

// Answer is what became of one name.
type Answer struct {
	Question iterate.Question `json:"question"`
	Zone     dnsname.Name     `json:"zone"`
	Class    iterate.Class    `json:"class"`
	State    State            `json:"state"`
	Cause    Cause            `json:"cause,omitempty"`
	Why      string           `json:"why"`
	Wildcard bool             `json:"wildcard,omitempty"` // a wildcard made it, as signatures show
	Servers  []Server         `json:"servers,omitempty"`
}

// Server is how far the answer of one server can be trusted.
type Server struct {
	Addr  netip.Addr `json:"addr"`
	State State      `json:"state"`
	Cause Cause      `json:"cause,omitempty"`
	Why   string     `json:"why,omitempty"`
}
