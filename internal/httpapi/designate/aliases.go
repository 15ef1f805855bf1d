package designate

import (
	"cmp"
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

// aliasState is the state of an ALIAS record set. Designate does not have it; its clients ignore the extra object.
type aliasState struct {
	Target   string        `json:"target"`
	Cause    string        `json:"cause"` // why the status is ERROR or STALE, for programs; empty in other statuses
	Detail   string        `json:"detail"`
	Since    timestamp     `json:"since"` // when the status began
	Chain    []string      `json:"chain"` // the names from the ALIAS to the addresses
	Families aliasFamilies `json:"families"`
	// NextAttempt is the time of the next lookup. It is null when a zone of this server holds the target: changes of the
	// target then arrive without lookups.
	NextAttempt timestamp `json:"next_attempt"`
}

// aliasFamilies holds the state of both address families.
type aliasFamilies struct {
	A    aliasFamily `json:"A"`
	AAAA aliasFamily `json:"AAAA"`
}

// aliasFamily is the state of one address family.
type aliasFamily struct {
	Addresses   []string  `json:"addresses"` // the addresses in the zone
	Found       int       `json:"found"`     // how many the target has; larger than len(Addresses) beyond the limit
	TTL         uint32    `json:"ttl"`       // the TTL of the target's records
	Answer      string    `json:"answer"`    // "found" or "nodata"; empty before the first answer
	Cause       string    `json:"cause"`     // why there is no newer answer
	Detail      string    `json:"detail"`
	Since       timestamp `json:"since"`
	LastSuccess timestamp `json:"last_success"`
	NextAttempt timestamp `json:"next_attempt"`
	// StaleUntil is the time at which addresses without a newer answer are or were withdrawn. null: never.
	StaleUntil timestamp `json:"stale_until"`
}

// wireAlias returns the state of an ALIAS as JSON. Only administrators see which resolvers were asked and what those
// replied: the addresses of resolvers describe the operator's network.
func wireAlias(st alias.State, admin bool) *aliasState {
	if admin {
		st.Detail = withAsked(st.Detail, st.Asked)
		for i, f := range st.Families {
			st.Families[i].Detail = withAsked(f.Detail, f.Asked)
		}
	}
	w := &aliasState{Target: st.Target, Cause: string(st.Cause), Detail: st.Detail, Since: timestamp(st.Since),
		Chain:    st.Chain,
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
	w := aliasFamily{Addresses: []string{}, Found: max(f.Found, len(f.Addrs)), TTL: f.TTL, Answer: string(f.Answer),
		Cause:  string(f.Cause),
		Detail: f.Detail, Since: timestamp(f.Since), LastSuccess: timestamp(f.LastSuccess),
		NextAttempt: timestamp(st.NextAttempt[i]),
		StaleUntil:  timestamp(st.StaleUntil[i])}
	for _, a := range f.Addrs {
		w.Addresses = append(w.Addresses, a.String())
	}
	return w
}

// wire returns the JSON form of a record set without its links. Entity tags are computed from this form.
func (c *call) wire(zs zoneSet) wireRecordSet { return c.wireAll([]zoneSet{zs})[0] }

// wireAll is wire for several sets. It asks for the progress of all ALIAS at once: lists of one project would otherwise
// take the lock of package alias very often, and changes of other projects wait for it.
func (c *call) wireAll(sets []zoneSet) []wireRecordSet {
	var keys []alias.Key
	for _, zs := range sets {
		if zs.set.Type == rr.TypeALIAS {
			keys = append(keys, alias.Key{Zone: zs.zone.ID, Name: zs.set.Name})
		}
	}
	progress := c.api.progress(keys...)
	out := make([]wireRecordSet, 0, len(sets))
	for _, zs := range sets {
		w := recordSetOnWire(zs.zone, zs.set)
		var target alias.Progress
		if zs.set.Type == rr.TypeALIAS {
			target, progress = progress[0], progress[1:]
		}
		w.Status, w.Action = c.setStatus(zs.set, target)
		out = append(out, w)
	}
	return out
}

// wireShown returns the JSON form of a record set with its links and the state of an ALIAS. The state changes without
// an edit of the set, so entity tags do not cover it.
func (c *call) wireShown(zs zoneSet) wireRecordSet {
	w := c.linkedSet(zs)
	if zs.set.Type == rr.TypeALIAS {
		if st, ok := c.api.Aliases.State(alias.Key{Zone: zs.zone.ID, Name: zs.set.Name}); ok {
			w.Alias = wireAlias(st, c.scope.caller.IsAdmin())
		}
	}
	return w
}

// progress returns the progress of some ALIAS. One that the service does not know yet is new.
func (a *API) progress(keys ...alias.Key) []alias.Progress {
	if len(keys) == 0 {
		return nil
	}
	out := a.Aliases.Progress(keys...)
	for i := range out {
		out[i] = cmp.Or(out[i], alias.Progress{Status: statusPending, Action: alias.Create})
	}
	return out
}

// statusOf returns the status of a record set.
func (c *call) statusOf(s zone.RecordSet) string {
	var target alias.Progress
	if s.Type == rr.TypeALIAS {
		target = c.api.progress(alias.Key{Zone: s.Zone, Name: s.Name})[0]
	}
	status, _ := c.setStatus(s, target)
	return status
}

// dropFlattened removes the A or AAAA set that an ALIAS left at the name of a new set. If the ALIAS still exists when
// the edit ends, the edit fails: a name cannot have an ALIAS and A or AAAA sets of an owner.
func dropFlattened(tx *publish.Tx, s zone.RecordSet) error {
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

// flatten looks up the target of an ALIAS now.
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
			message: fmt.Sprintf("The target was looked up a moment ago; ask again in %d seconds.", s)}
	}
	return reply{status: http.StatusAccepted, body: c.wireShown(zs)}, nil
}

// shownChange returns the part of a change that the owner of a zone sees. It leaves out the address sets that were
// derived from an ALIAS: the owner cannot edit them.
func shownChange(ch store.SetChange) store.SetChange {
	if ch.Before != nil && ch.Before.Hidden {
		ch.Before = nil
	}
	if ch.After != nil && ch.After.Hidden {
		ch.After = nil
	}
	return ch
}

// aliasSet returns an ALIAS with its target and its effective TTL, for an export.
func aliasSet(v store.View, z zone.Zone, n dnsname.Name) (rr.Set, error) {
	s, err := v.RecordSet(z.ID, n, rr.TypeALIAS)
	ttl := z.TTL
	if s.TTL != nil {
		ttl = *s.TTL
	}
	return rr.Set{Name: s.Name, Type: s.Type, TTL: ttl, Data: s.Data}, err
}
