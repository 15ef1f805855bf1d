package designate

import (
	"maps"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/alias"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// Peers connects the API to the state of other name servers.
type Peers struct {
	Progress func(zone uuid.UUID) []transfer.Progress // returns the state of the zone at each secondary
	Refresh  func(zone uuid.UUID, force bool)         // starts the transfer of a SECONDARY zone
	Copy     func(zone uuid.UUID) transfer.Copy       // returns the state of our copy of a SECONDARY zone
}

// errorAfter is how long a secondary may lack the newest serial before the status of the zone is ERROR.
const errorAfter = 10 * time.Minute

// secondaryState is the state of a zone at a secondary. It is not in Designate.
type secondaryState struct {
	Address      string    `json:"address"`
	InSync       bool      `json:"in_sync"`
	Acknowledged bool      `json:"acknowledged"` // it answered the NOTIFY of the newest serial, or has that serial
	Serial       *uint32   `json:"serial"`       // null: not known
	Since        timestamp `json:"since"`        // the time from which it lacks the newest serial
	NextAttempt  timestamp `json:"next_attempt"`
	Problem      string    `json:"problem,omitempty"`
}

// copyState is the state of our copy of a SECONDARY zone. It is not in Designate.
type copyState struct {
	CheckedAt   timestamp `json:"checked_at"` // when a master last confirmed that the copy has the newest serial
	Expired     bool      `json:"expired"`
	NextAttempt timestamp `json:"next_attempt"`
	Problem     string    `json:"problem,omitempty"`
}

// addState adds the state of a zone at other servers, and derives the status of the zone. The zone is PENDING until all
// secondaries have the newest serial, and ERROR when one lacks it for longer than errorAfter. A SECONDARY zone is
// PENDING until its first transfer, and ERROR when it has expired. The statuses are Designate's.
//
// Only administrators see why another server does not have the zone: the reason would show a tenant whether a port in
// the operator's network is open.
func (c *call) addState(z zone.Zone, w *wireZone) {
	admin := c.scope.caller.IsAdmin()
	for _, s := range c.api.Peers.Progress(z.ID) {
		state := secondaryState{Address: s.Secondary.Addr.String(), InSync: s.InSync,
			Acknowledged: s.InSync || s.Acknowledged, Since: timestamp(s.Since),
			NextAttempt: timestamp(s.Next), Problem: s.Problem}
		if s.Problem != "" && !admin {
			state.Problem = "the server does not have the newest serial; an administrator of this server can see the " +
				"details"
		}
		if s.Has != 0 {
			state.Serial = &s.Has
		}
		w.Secondaries = append(w.Secondaries, state)
		switch {
		case s.InSync:
		case isLate(s):
			w.Status = statusError
		case w.Status != statusError:
			w.Status = statusPending
		}
	}
	if z.Kind == zone.Secondary {
		s := c.api.Peers.Copy(z.ID)
		w.TransferredAt = timestamp(s.Transferred)
		w.Copy = &copyState{timestamp(s.Checked), s.Expired, timestamp(s.Next), s.Reason}
		if admin {
			w.Copy.Problem = s.Problem
		}
		switch {
		case s.Expired:
			w.Status = statusError
		case s.Transferred.IsZero():
			w.Status = statusPending
		}
	}
	if w.Status != statusActive {
		w.Action = actionUpdate
		// The first serial is the Unix time of the zone's creation, and every change of its records increases it. So a
		// serial near that time means that the zone has not changed since its creation.
		if z.Updated.IsZero() && z.Version == 1 && int64(z.Serial) <= z.Created.Unix()+1 {
			w.Action = actionCreate
		}
	}
}

// isLate reports whether a secondary lacks a serial for so long that something must be wrong.
func isLate(p transfer.Progress) bool { return !p.Since.IsZero() && time.Since(p.Since) > errorAfter }

// behind returns the secondaries that lack changes of a zone. It remembers the last zone: a list has many record sets
// of one zone.
func (c *call) behind(zone uuid.UUID) []transfer.Progress {
	if !c.lag.known || c.lag.zone != zone {
		c.lag = lag{zone: zone, known: true}
		for _, p := range c.api.Peers.Progress(zone) {
			if !p.InSync {
				c.lag.behind = append(c.lag.behind, p)
			}
		}
	}
	return c.lag.behind
}

// lag holds what a call knows about the secondaries of one zone.
type lag struct {
	zone   uuid.UUID
	known  bool
	behind []transfer.Progress
}

// setStatus returns the status and the action of a record set. It is PENDING until all secondaries have its last
// change, and ERROR when one lacks the change for longer than errorAfter. An ALIAS also depends on its target.
func (c *call) setStatus(s zone.RecordSet, target alias.Progress) (status, action string) {
	if s.Type == rr.TypeALIAS && string(target.Status) != statusActive {
		return string(target.Status), target.Action
	}
	changed, last := s.Created, actionCreate
	if !s.Updated.IsZero() {
		changed, last = s.Updated, actionUpdate
	}
	status, action = statusActive, actionNone
	for _, p := range c.behind(s.Zone) {
		switch {
		case changed.Before(p.From):
		case isLate(p):
			return statusError, last
		default:
			status, action = statusPending, last
		}
	}
	return status, action
}

// status returns the status of a zone, for the filter of lists.
func (c *call) status(z zone.Zone) string {
	w := wireZone{Status: statusActive}
	c.addState(z, &w)
	return w.Status
}

// zoneListing returns the listing of zones with a filter for their status.
func (c *call) zoneListing() listing[zone.Zone] {
	l := zoneListing
	l.filters = maps.Clone(l.filters)
	l.filters["status"] = c.status
	return l
}

// checkMasters refuses masters that a tenant must not choose.
//
//   - Host names are refused for everyone, although Designate's schema has them: a resolver would choose the master.
//   - Special addresses need an administrator: see transfer.CheckMaster.
//   - Ports other than 53, and 853 for TLS, need an administrator: they belong to services that this server has no
//     reason to contact.
func (c *call) checkMasters(masters []string) error {
	for i, m := range masters {
		at, err := transfer.ParseMaster(m)
		if err != nil {
			return invalid(problem{[]any{"masters", i}, err.Error(), "format", "ip"})
		}
		if !at.UsualPort() && !c.scope.caller.IsAdmin() {
			return forbidden("The master %s is not on port 53, or 853 for TLS; only an administrator may name another port.", m)
		}
		if err := transfer.CheckMaster(at.Addr(), c.namer(), c.api.Settings.Special); err != nil {
			return forbidden("The master %s %v.", m, err)
		}
	}
	return nil
}

// namer returns the caller as the namer of masters.
func (c *call) namer() zone.Namer {
	if c.scope.caller.IsAdmin() {
		return zone.Administrator
	}
	return zone.Tenant
}

// refresh starts the transfer of a SECONDARY zone that is new or has new masters.
func (c *call) refresh(z zone.Zone) {
	if z.Kind == zone.Secondary {
		c.api.Peers.Refresh(z.ID, false)
	}
}

// fetchFromMasters starts a transfer of a SECONDARY zone even if its serial is the newest. It has the status and, for
// other zones, the message of Designate.
func (c *call) fetchFromMasters() (reply, error) {
	err := c.view(func(v store.View) error {
		z, err := c.ownZone(v)
		if err != nil {
			return err
		}
		if z.Kind != zone.Secondary {
			return badRequest("Can't XFR a non Secondary zone.")
		}
		c.api.Peers.Refresh(z.ID, true)
		return nil
	})
	return reply{status: http.StatusAccepted}, err
}

// errSecondary returns the error for a change of records in a SECONDARY zone: the next transfer would undo the change.
func errSecondary() *fault {
	return forbidden("The zone is of type SECONDARY: its record sets are changed at its masters.")
}
