package alias

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/rr"
)

// Key identifies an ALIAS record set.
type Key struct {
	Zone uuid.UUID
	Name dnsname.Name
}

func (k Key) id() string { return k.Zone.String() + "/" + k.Name.String() }

func (k Key) compare(o Key) int {
	if n := bytes.Compare(k.Zone[:], o.Zone[:]); n != 0 {
		return n
	}
	return strings.Compare(k.Name.Wire(), o.Name.Wire())
}

func parseKey(id string) (Key, error) {
	z, n, _ := strings.Cut(id, "/")
	zone, err := uuid.Parse(z)
	if err != nil {
		return Key{}, fmt.Errorf("alias row %q: %w", id, err)
	}
	name, err := dnsname.Parse(n)
	return Key{zone, name}, err
}

// Status is the state of an ALIAS. The values are Designate's, except STALE.
type Status string

// The states of an ALIAS.
const (
	statusPending Status = "PENDING" // the target has not been looked up yet
	statusActive  Status = "ACTIVE"
	statusStale   Status = "STALE" // the target cannot be looked up; the last good addresses are served
	statusError   Status = "ERROR" // the target has no addresses, or never had any
)

// Actions: the change that an ALIAS is waiting for.
const (
	Create       = "CREATE"
	actionUpdate = "UPDATE"
	actionNone   = "NONE"
)

// Causes that this package adds to those of the tracker.
const (
	causeNoResolver follow.Cause = "no-resolver"
	causePrivate    follow.Cause = "private-address"
	causeOwn        follow.Cause = "own-address"
	causeStaleLimit follow.Cause = "stale-limit" // the last good addresses were withdrawn
)

// families are the address families in the order of Record.Families.
var families = [...]follow.Family{follow.IPv4, follow.IPv6}

func typeOf(family int) rr.Type { return [...]rr.Type{rr.TypeA, rr.TypeAAAA}[family] }

// Record is the stored state of an ALIAS. It is written only when a field other than a time changes.
type Record struct {
	Target   string       `json:"target"`
	Outside  string       `json:"outside,omitempty"` // name that resolvers look up; empty: the whole path is in our zones
	Status   Status       `json:"status"`
	Action   string       `json:"action"`
	Since    time.Time    `json:"since"` // when Status changed
	Cause    follow.Cause `json:"cause,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Asked    string       `json:"asked,omitempty"`     // result and address of the resolver; only for operators
	Chain    []string     `json:"chain,omitempty"`     // names from the ALIAS to the addresses
	Families [2]Family    `json:"families"`            // A, AAAA
	AllZones bool         `json:"all_zones,omitempty"` // Policy.AllZones when the ALIAS was flattened
}

// Family is the part of a Record about one address family.
type Family struct {
	Answer      follow.Cause `json:"answer,omitempty"` // last answer for this target
	Cause       follow.Cause `json:"cause,omitempty"`  // why Answer is not current; empty: it is current
	Detail      string       `json:"detail,omitempty"`
	Asked       string       `json:"asked,omitempty"` // as in Record
	Since       time.Time    `json:"since,omitzero"`  // when Answer or Cause changed
	Addrs       []netip.Addr `json:"addrs,omitempty"`
	TTL         uint32       `json:"ttl,omitempty"`   // least TTL of the path to Addrs, without the TTL of the ALIAS
	Found       int          `json:"found,omitempty"` // number of addresses found, if larger than len(Addrs)
	LastSuccess time.Time    `json:"last_success,omitzero"`
	StaleSince  time.Time    `json:"stale_since,omitzero"` // first failed lookup after LastSuccess; zero: none
}

func readRecord(id string, value []byte) (Key, Record, error) {
	var rec Record
	k, err := parseKey(id)
	if err == nil {
		err = json.Unmarshal(value, &rec)
	}
	if err != nil {
		err = fmt.Errorf("alias row %q: %w", id, err)
	}
	return k, rec, err
}

// same reports whether two records are equal, ignoring the times that change with every lookup.
func (r Record) same(o Record) bool {
	if r.AllZones != o.AllZones || r.Target != o.Target || r.Outside != o.Outside || r.Status != o.Status ||
		r.Action != o.Action || r.Cause != o.Cause ||
		r.Detail != o.Detail || r.Asked != o.Asked || !slices.Equal(r.Chain, o.Chain) {
		return false
	}
	for i, f := range r.Families {
		g := o.Families[i]
		if f.Answer != g.Answer || f.Cause != g.Cause || f.Detail != g.Detail || f.Asked != g.Asked ||
			!f.StaleSince.Equal(g.StaleSince) || f.TTL != g.TTL || f.Found != g.Found ||
			!slices.Equal(f.Addrs, g.Addrs) {
			return false
		}
	}
	return true
}

func (r Record) outside() dnsname.Name {
	n, err := dnsname.Parse(r.Outside)
	if err != nil || r.Outside == "" {
		return dnsname.Name{}
	}
	return n
}

// deps returns the names that the ALIAS depends on, as far as the record knows them.
func (r Record) deps() []dnsname.Name {
	out := make([]dnsname.Name, 0, len(r.Chain)+1)
	for _, text := range append(slices.Clone(r.Chain), r.Target) {
		if n, err := dnsname.Parse(text); err == nil && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// seed returns the state with which the tracker starts for a family of the outside target, from the stored record.
func (r Record) seed(family int) (follow.State, bool) {
	f := r.Families[family]
	if f.Answer == "" || r.Outside == "" {
		return follow.State{}, false
	}
	ttl := time.Duration(f.TTL) * time.Second
	st := follow.State{Addrs: f.Addrs, TTL: ttl, Answer: f.Answer, Proven: true, Since: f.Since,
		LastSuccess: f.LastSuccess,
		AnswerChain: r.outsideLinks(ttl)}
	if !f.LastSuccess.IsZero() {
		st.ValidUntil = f.LastSuccess.Add(ttl)
	}
	switch f.Cause {
	case "":
	case follow.NXDomain:
		st.Answer = follow.NXDomain
	// these causes are not from the tracker, which must look up the target again
	case causePrivate, causeOwn, causeNoResolver, causeStaleLimit:
		return follow.State{}, false
	default:
		st.Err = &follow.Error{Cause: f.Cause, Detail: f.Asked}
	}
	return st, true
}

// outsideLinks returns the part of the chain outside our zones. The TTL of each link is not stored; ttl is a lower
// bound.
func (r Record) outsideLinks(ttl time.Duration) []follow.Link {
	names := r.Chain[max(0, slices.Index(r.Chain, r.Outside)):]
	var out []follow.Link
	for i := range max(0, len(names)-1) {
		from, err := dnsname.Parse(names[i])
		to, err2 := dnsname.Parse(names[i+1])
		if err != nil || err2 != nil {
			return nil
		}
		out = append(out, follow.Link{Name: from, Target: to, TTL: ttl})
	}
	return out
}
