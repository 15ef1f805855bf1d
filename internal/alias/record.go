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

// Key finds an ALIAS record set.
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

// Status is the state of an ALIAS. The words are Designate's, except STALE.
type Status string

// The states of an ALIAS.
const (
	statusPending Status = "PENDING" // the target was not looked up yet
	statusActive  Status = "ACTIVE"
	statusStale   Status = "STALE" // the last good addresses are served, and the target cannot be looked up
	statusError   Status = "ERROR" // there never were addresses, or there are none any more
)

// What an ALIAS is about to become.
const (
	Create       = "CREATE"
	actionUpdate = "UPDATE"
	actionNone   = "NONE"
)

// Causes that are not the tracker's.
const (
	causeNoResolver follow.Cause = "no-resolver"
	causePrivate    follow.Cause = "private-address"
	causeOwn        follow.Cause = "own-address"
	causeStaleLimit follow.Cause = "stale-limit" // the last good addresses were withdrawn
)

// families are those of Record.Families.
var families = [...]follow.Family{follow.IPv4, follow.IPv6}

func typeOf(family int) rr.Type { return [...]rr.Type{rr.TypeA, rr.TypeAAAA}[family] }

// Record is what is known of an ALIAS, as it is kept in the store. It is written only when it differs in more than times.
type Record struct {
	Target   string       `json:"target"`
	Outside  string       `json:"outside,omitempty"` // the name that is looked up elsewhere; empty: all of the way is ours
	Status   Status       `json:"status"`
	Action   string       `json:"action"`
	Since    time.Time    `json:"since"` // of Status
	Cause    follow.Cause `json:"cause,omitempty"`
	Detail   string       `json:"detail,omitempty"`
	Asked    string       `json:"asked,omitempty"`     // what resolvers said, and which: not for everybody
	Chain    []string     `json:"chain,omitempty"`     // names from the ALIAS to the addresses
	Families [2]Family    `json:"families"`            // A, AAAA
	AllZones bool         `json:"all_zones,omitempty"` // Policy.AllZones when it was flattened
}

// Family is one family of a Record.
type Family struct {
	Answer      follow.Cause `json:"answer,omitempty"` // the last there was of this target
	Cause       follow.Cause `json:"cause,omitempty"`  // why there is no newer one; empty: it is as new as can be
	Detail      string       `json:"detail,omitempty"`
	Asked       string       `json:"asked,omitempty"` // as in Record
	Since       time.Time    `json:"since,omitzero"`  // of Answer and Cause
	Addrs       []netip.Addr `json:"addrs,omitempty"`
	TTL         uint32       `json:"ttl,omitempty"`   // on the way to Addrs; the ALIAS's own is not counted
	Found       int          `json:"found,omitempty"` // how many there were, when that is more than Addrs has
	LastSuccess time.Time    `json:"last_success,omitzero"`
	StaleSince  time.Time    `json:"stale_since,omitzero"` // when the first lookup after that failed; zero: none did
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

// same reports whether two records tell the same, but for the times of what goes on.
func (r Record) same(o Record) bool {
	if r.AllZones != o.AllZones || r.Target != o.Target || r.Outside != o.Outside || r.Status != o.Status || r.Action != o.Action || r.Cause != o.Cause ||
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

// deps are the names of which a change matters, as far as the record knows them.
func (r Record) deps() []dnsname.Name {
	out := make([]dnsname.Name, 0, len(r.Chain)+1)
	for _, text := range append(slices.Clone(r.Chain), r.Target) {
		if n, err := dnsname.Parse(text); err == nil && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// seed is what the tracker shall know of a family of the outside target from before.
func (r Record) seed(family int) (follow.State, bool) {
	f := r.Families[family]
	if f.Answer == "" || r.Outside == "" {
		return follow.State{}, false
	}
	ttl := time.Duration(f.TTL) * time.Second
	st := follow.State{Addrs: f.Addrs, TTL: ttl, Answer: f.Answer, Proven: true, Since: f.Since, LastSuccess: f.LastSuccess,
		Way: r.wayOutside(ttl)}
	if !f.LastSuccess.IsZero() {
		st.ValidUntil = f.LastSuccess.Add(ttl)
	}
	switch f.Cause {
	case "":
	case follow.NXDomain:
		st.Answer = follow.NXDomain
	case causePrivate, causeOwn, causeNoResolver, causeStaleLimit: // not from the tracker, which must look it up again
		return follow.State{}, false
	default:
		st.Err = &follow.Error{Cause: f.Cause, Detail: f.Asked}
	}
	return st, true
}

// wayOutside is the part of the chain that lies outside. The TTLs of its links are not kept; none is less than that of all.
func (r Record) wayOutside(ttl time.Duration) []follow.Link {
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
