package designate

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// aliasType is how the API writes the type.
const aliasType = "ALIAS"

// aliasState is what is known of an ALIAS: an object that clients of Designate pass over.
type aliasState struct {
	Target      string        `json:"target"`
	Cause       string        `json:"cause"` // of ERROR and STALE, for programs; empty: none
	Detail      string        `json:"detail"`
	Since       timestamp     `json:"since"` // of the status
	Chain       []string      `json:"chain"` // names from the ALIAS to the addresses
	Families    aliasFamilies `json:"families"`
	NextAttempt timestamp     `json:"next_attempt"` // null: the target is in a zone of this server, and followed as it changes
}

// aliasFamilies are the two kinds of addresses.
type aliasFamilies struct {
	A    aliasFamily `json:"A"`
	AAAA aliasFamily `json:"AAAA"`
}

// aliasFamily is what is known of one of them.
type aliasFamily struct {
	Addresses   []string  `json:"addresses"` // that are served
	Found       int       `json:"found"`     // that the target has; more than are served, when they are too many
	TTL         uint32    `json:"ttl"`       // of the target
	Answer      string    `json:"answer"`    // found, nodata; empty: none yet
	Cause       string    `json:"cause"`     // why there is no newer answer
	Detail      string    `json:"detail"`
	Since       timestamp `json:"since"`
	LastSuccess timestamp `json:"last_success"`
	NextAttempt timestamp `json:"next_attempt"`
	StaleUntil  timestamp `json:"stale_until"` // when the addresses are withdrawn, if nothing newer comes, or were; null: never
}

// wireAlias is the state of an ALIAS. Which resolvers were asked, and what they said, is an administrator's to know.
func wireAlias(st alias.State, admin bool) *aliasState {
	if admin {
		st.Detail = withAsked(st.Detail, st.Asked)
		for i, f := range st.Families {
			st.Families[i].Detail = withAsked(f.Detail, f.Asked)
		}
	}
	w := &aliasState{Target: st.Target, Cause: string(st.Cause), Detail: st.Detail, Since: timestamp(st.Since), Chain: st.Chain,
		Families: aliasFamilies{wireFamily(st, 0), wireFamily(st, 1)}}
	for _, at := range st.NextAttempt {
		if next := time.Time(w.NextAttempt); !at.IsZero() && (next.IsZero() || at.Before(next)) {
			w.NextAttempt = timestamp(at)
		}
	}
	return w
}

func withAsked(detail, asked string) string {
	if asked == "" {
		return detail
	}
	return detail + " (" + asked + ")"
}

func wireFamily(st alias.State, i int) aliasFamily {
	f := st.Families[i]
	w := aliasFamily{Addresses: []string{}, Found: max(f.Found, len(f.Addrs)), TTL: f.TTL, Answer: string(f.Answer), Cause: string(f.Cause),
		Detail: f.Detail, Since: timestamp(f.Since), LastSuccess: timestamp(f.LastSuccess), NextAttempt: timestamp(st.NextAttempt[i]),
		StaleUntil: timestamp(st.StaleUntil[i])}
	for _, a := range f.Addrs {
		w.Addresses = append(w.Addresses, a.String())
	}
	return w
}

// wire is a record set as it looks on the wire, without its links.
func (c *call) wire(zs zoneSet) wireRecordSet {
	w := recordSetOnWire(zs.zone, zs.set)
	if zs.set.Type == rr.TypeALIAS {
		w.Status, w.Action = c.api.aliasStatus(alias.Key{Zone: zs.zone.ID, Name: zs.set.Name})
	}
	return w
}

// wireShown is wire with all that is known of an ALIAS. That changes without the set, so no entity tag counts it.
func (c *call) wireShown(zs zoneSet) wireRecordSet {
	w := c.linkedSet(zs)
	if zs.set.Type == rr.TypeALIAS {
		if st, ok := c.api.Aliases.State(alias.Key{Zone: zs.zone.ID, Name: zs.set.Name}); ok {
			w.Alias = wireAlias(st, c.scope.caller.IsAdmin())
		}
	}
	return w
}

// aliasStatus is the status and action of an ALIAS.
func (a *API) aliasStatus(k alias.Key) (status, action string) {
	if status, action, ok := a.Aliases.Status(k); ok {
		return string(status), action
	}
	return statusPending, alias.Create
}

// statusOf is the status of a record set.
func (a *API) statusOf(s zone.RecordSet) string {
	if s.Type != rr.TypeALIAS {
		return statusActive
	}
	status, _ := a.aliasStatus(alias.Key{Zone: s.Zone, Name: s.Name})
	return status
}

// uncover removes what an ALIAS left at the place of a new set. If the ALIAS is still there when the edit ends, the two
// cannot stand together, and the edit fails.
func uncover(tx *publish.Tx, s zone.RecordSet) error {
	if s.Type != rr.TypeA && s.Type != rr.TypeAAAA {
		return nil
	}
	have, err := tx.RecordSet(s.Zone, s.Name, s.Type)
	if errors.Is(err, store.ErrNotFound) || err == nil && !have.Hidden {
		return nil
	}
	if err != nil {
		return err
	}
	return tx.DeleteSet(s.Zone, s.Name, s.Type)
}

// flatten looks the target of an ALIAS up now.
func (c *call) flatten() (reply, error) {
	zs, err := viewed(c, c.recordSet)
	if err != nil {
		return reply{}, err
	}
	if zs.set.Type != rr.TypeALIAS {
		return reply{}, badRequest("Only ALIAS recordsets can be flattened; this is %s", zs.set.Type)
	}
	wait, ok := c.api.Aliases.Refresh(alias.Key{Zone: zs.zone.ID, Name: zs.set.Name})
	switch {
	case !ok:
		return reply{}, notFound("recordset", "RecordSet")
	case wait > 0:
		s := int(math.Ceil(wait.Seconds()))
		return reply{}, &fault{status: http.StatusTooManyRequests, kind: "over_limit", retryAfter: s,
			message: fmt.Sprintf("The target was looked up just now; ask again in %d seconds.", s)}
	}
	return reply{status: http.StatusAccepted, body: c.wireShown(zs)}, nil
}

// shownChange is what the owner of a zone sees of a change: sets that are made of an ALIAS are not theirs.
func shownChange(ch store.SetChange) store.SetChange {
	if ch.Before != nil && ch.Before.Hidden {
		ch.Before = nil
	}
	if ch.After != nil && ch.After.Hidden {
		ch.After = nil
	}
	return ch
}

// aliasSet is an ALIAS with its target, for an export.
func aliasSet(v store.View, z zone.Zone, n dnsname.Name) (rr.Set, error) {
	s, err := v.RecordSet(z.ID, n, rr.TypeALIAS)
	ttl := z.TTL
	if s.TTL != nil {
		ttl = *s.TTL
	}
	return rr.Set{Name: s.Name, Type: s.Type, TTL: ttl, Data: s.Data}, err
}
