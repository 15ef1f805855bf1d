package mec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/specialaddr"
)

// State is whether a rule is served.
type State string

// The states of MEC 011.
const (
	Active   State = "ACTIVE"
	Inactive State = "INACTIVE"
)

// defaultTTL is the TTL in answers from rules and records without one. It is short, because an edge address moves with
// its application.
const defaultTTL = 30

// Rule is a DNS rule of an application. While it is Active, its name resolves to its address.
type Rule struct {
	App         string
	ID          string
	Domain      string       // the name as the client wrote it, for replies
	Name        dnsname.Name // the canonical form of Domain
	Addr        netip.Addr
	TTL         *uint32 // as the client gave it; nil: never expires (MEC 011), and answers have defaultTTL
	State       State   // empty in input: Active for a new rule, unchanged for an existing one
	LoadBalance bool
	ExpiresAt   time.Time // when the service removes the rule; zero: never

	// Grant is the domain in which the application may choose the name, address and TTL of the rule. The platform sets it.
	// Zero, the default: the application may change only the state.
	Grant dnsname.Name

	// The Service sets the following fields.
	Version int // increases with every change
	Created time.Time
	Updated time.Time // zero before the first update
}

// Type returns the type of the record that follows from the rule.
func (r Rule) Type() rr.Type { return addrType(r.Addr) }

// AddrType returns the address family in the form of MEC 011.
func (r Rule) AddrType() string {
	if r.Addr.Is4() {
		return "IP_V4"
	}
	return "IP_V6"
}

// ETag returns a strong entity tag without quotes. It depends only on the content that the owner wrote, not on versions
// or times.
func (r Rule) ETag() string {
	row := r.row()
	row.Version, row.Created, row.Updated = 0, time.Time{}, time.Time{}
	b, err := json.Marshal([]any{r.App, r.ID, row})
	if err != nil {
		panic(err) // cannot happen: the row has only strings, numbers and times up to the year 9999
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// ETagOf returns a strong entity tag of a list of rules. The order of the rules does not matter.
func ETagOf(rules []Rule) string {
	tags := make([]string, len(rules))
	for i, r := range rules {
		tags[i] = r.ETag()
	}
	slices.Sort(tags)
	sum := sha256.Sum256([]byte(strings.Join(tags, " ")))
	return hex.EncodeToString(sum[:16])
}

// sameContent reports whether two rules are equal in everything that an owner writes.
func (r Rule) sameContent(o Rule) bool { return r.ETag() == o.ETag() }

// Draft is a rule in the form of a client. ParseRule turns it into a Rule.
type Draft struct {
	ID          string // dnsRuleId
	Domain      string // domainName
	AddrType    string // ipAddressType: IP_V4 or IP_V6, or EdgeGallery's IPv4 and IPv6
	Addr        string // ipAddress
	TTL         *int64
	State       string // may be empty; see Rule.State
	LoadBalance bool
	ExpiresAt   time.Time
	Grant       string // grantedDomain; may be empty
}

// ParseRule checks a draft and returns its rule, without an application. The table has the NAT64 prefixes of the
// operator. Errors are FieldErrors with the names of MEC 011.
func ParseRule(d Draft, special specialaddr.Table) (Rule, error) {
	r := Rule{ID: d.ID, Domain: d.Domain, LoadBalance: d.LoadBalance}
	var err error
	if err = checkID("dnsRuleId", d.ID); err != nil {
		return Rule{}, err
	}
	if r.Name, err = parseDomain("domainName", d.Domain); err != nil {
		return Rule{}, err
	}
	if r.Addr, err = parseAddr("ipAddress", d.Addr, special); err != nil {
		return Rule{}, err
	}
	if err = checkFamily(d.AddrType, r.Addr); err != nil {
		return Rule{}, err
	}
	if r.TTL, err = parseTTL("ttl", d.TTL); err != nil {
		return Rule{}, err
	}
	if r.State, err = ParseState(d.State); err != nil && d.State != "" {
		return Rule{}, err
	}
	if r.ExpiresAt, err = parseExpiry(d.ExpiresAt); err != nil {
		return Rule{}, err
	}
	if r.Grant, err = parseGrant(d.Grant, r.Name); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// parseGrant parses the domain that the platform grants with a rule. Empty means no grant.
func parseGrant(s string, name dnsname.Name) (dnsname.Name, error) {
	if s == "" {
		return dnsname.Name{}, nil
	}
	grant, err := parseDomain("grantedDomain", s)
	switch {
	case err != nil:
		return grant, err
	case grant.IsWildcard():
		return grant, fieldErr("grantedDomain", "%s is a wildcard: give the domain above it", grant)
	case !name.IsIn(grant):
		return grant, fieldErr("grantedDomain", "%s does not contain the domainName %s", grant, name)
	}
	return grant, nil
}

// parseExpiry converts a time to the form in which it is stored and compared: UTC, in microseconds. It checks the year
// after the conversion, because the offset of a time zone can move a time into the year 10000, which RFC 3339 cannot
// write.
func parseExpiry(t time.Time) (time.Time, error) {
	if t.IsZero() {
		return time.Time{}, nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	if t.Year() < 1970 || t.Year() > 9999 {
		return t, fieldErr("expiresAt", "is not between the years 1970 and 9999")
	}
	return t, nil
}

// ParseState parses ACTIVE or INACTIVE.
func ParseState(s string) (State, error) {
	switch State(s) {
	case Active, Inactive:
		return State(s), nil
	case "":
		return "", fieldErr("state", "is missing: ACTIVE or INACTIVE")
	}
	return "", fieldErr("state", "%.40q is neither ACTIVE nor INACTIVE", s)
}

// maxID bounds the ids of applications and rules: a UUID has 36 characters and EdgeGallery allows 63.
const maxID = 128

// CheckApp returns an error if id cannot be the id of an application instance.
func CheckApp(id string) error { return checkID("appInstanceId", id) }

// checkID refuses ids that cannot be part of a URL path, or that a reader of a log could confuse with another id. NUL
// is refused too, because it separates ids in the keys of the store.
func checkID(field, id string) error {
	switch {
	case id == "":
		return fieldErr(field, "is missing")
	case len(id) > maxID:
		return fieldErr(field, "is longer than %d bytes", maxID)
	case !utf8.ValidString(id):
		return fieldErr(field, "is not UTF-8")
	case id == "." || id == "..":
		return fieldErr(field, "%q has another meaning in a path", id)
	}
	for _, c := range id {
		if c <= ' ' || c == '/' || c == '\\' || c >= 0x7f && c <= 0xa0 || c == '\u2028' || c == '\u2029' {
			return fieldErr(field, "%q contains %q, which an id must not have", id, c)
		}
	}
	return nil
}

func checkFamily(kind string, a netip.Addr) error {
	switch strings.ToUpper(strings.ReplaceAll(kind, "_", "")) {
	case "IPV4":
		if !a.Is4() {
			return fieldErr("ipAddress", "%s is an IPv6 address, and ipAddressType says IP_V4", a)
		}
	case "IPV6":
		if a.Is4() {
			return fieldErr("ipAddress", "%s is an IPv4 address, and ipAddressType says IP_V6", a)
		}
	case "":
		return fieldErr("ipAddressType", "is missing: IP_V4 or IP_V6")
	default:
		return fieldErr("ipAddressType", "%.40q is neither IP_V4 nor IP_V6", kind)
	}
	return nil
}

// parseTTL accepts every TTL of 32 bits, so that clients read back what they wrote. servedTTL limits the TTL in
// answers.
func parseTTL(field string, ttl *int64) (*uint32, error) {
	if ttl == nil {
		return nil, nil
	}
	if *ttl < 0 || *ttl > 1<<32-1 {
		return nil, fieldErr(field, "%d is not between 0 and 4294967295 seconds", *ttl)
	}
	v := uint32(*ttl)
	return &v, nil
}

// servedTTL returns the TTL in answers. It is at most rr.MaxTTL: resolvers treat larger ones as 0 (RFC 2181 §8).
func servedTTL(ttl *uint32) uint32 {
	if ttl == nil {
		return defaultTTL
	}
	return min(*ttl, rr.MaxTTL)
}

// ruleRow is a rule in the store. Its key is its application and id.
type ruleRow struct {
	Domain  string     `json:"d"`
	Addr    netip.Addr `json:"a"`
	TTL     *uint32    `json:"t,omitempty"`
	State   State      `json:"s"`
	Balance bool       `json:"b,omitempty"`
	Expires time.Time  `json:"e,omitzero"`
	Version int        `json:"v,omitempty"`
	Created time.Time  `json:"c,omitzero"`
	Updated time.Time  `json:"u,omitzero"`
	Wire    []byte     `json:"n"` // the name
	Grant   []byte     `json:"g,omitempty"`
}

func (r Rule) row() ruleRow {
	return ruleRow{r.Domain, r.Addr, r.TTL, r.State, r.LoadBalance, r.ExpiresAt, r.Version, r.Created, r.Updated,
		[]byte(r.Name.Wire()), []byte(r.Grant.Wire())}
}

func (w ruleRow) rule(app, id string) Rule {
	return Rule{App: app, ID: id, Domain: w.Domain, Name: dnsname.FromCanonical(string(w.Wire)), Addr: w.Addr,
		TTL: w.TTL, State: w.State, LoadBalance: w.Balance, ExpiresAt: w.Expires,
		Grant: dnsname.FromCanonical(string(w.Grant)), Version: w.Version, Created: w.Created, Updated: w.Updated}
}
