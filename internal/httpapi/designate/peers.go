package designate

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/transfer"
	"github.com/nameplane/nameplane/internal/zone"
)

// Peers is what the API knows of other name servers. The zero value is none.
type Peers struct {
	Progress func(zone uuid.UUID) []transfer.Progress // of the servers that transfer our zones; nil: there are none
	Refresh  func(zone uuid.UUID, force bool)         // fetches a SECONDARY zone; nil: there are no such zones
	Copy     func(zone uuid.UUID) transfer.Copy       // how it is
}

// errorAfter is how long a secondary may lack the newest serial before its zone is in ERROR.
const errorAfter = 10 * time.Minute

// secondaryState is ours: what a server that transfers the zone has of it.
type secondaryState struct {
	Address      string    `json:"address"`
	InSync       bool      `json:"in_sync"`
	Acknowledged bool      `json:"acknowledged"` // it has answered the NOTIFY of the newest serial, or has that
	Serial       *uint32   `json:"serial"`       // null: not known
	Since        timestamp `json:"since"`        // when it began to lack something
	NextAttempt  timestamp `json:"next_attempt"`
	Problem      string    `json:"problem,omitempty"`
}

// copyState is ours: how the copy of a SECONDARY zone is.
type copyState struct {
	CheckedAt   timestamp `json:"checked_at"` // when a master last said that it is the newest
	Expired     bool      `json:"expired"`
	NextAttempt timestamp `json:"next_attempt"`
	Problem     string    `json:"problem,omitempty"`
}

// addState says how a zone is at other servers: PENDING until all that transfer it have it, and ERROR when one lacks it for
// long. A SECONDARY zone is PENDING until it was transferred, and in ERROR when it has expired.
func (c *call) addState(z zone.Zone, w *wireZone) {
	p := c.api.Peers
	if p.Progress != nil {
		for _, s := range p.Progress(z.ID) {
			state := secondaryState{Address: s.Secondary.Addr.String(), InSync: s.InSync, Acknowledged: s.InSync || s.Acknowledged,
				Since: timestamp(s.Since), NextAttempt: timestamp(s.Next), Problem: s.Problem}
			if s.Has != 0 {
				state.Serial = &s.Has
			}
			w.Secondaries = append(w.Secondaries, state)
			switch {
			case s.InSync:
			case !s.Since.IsZero() && time.Since(s.Since) > errorAfter:
				w.Status = statusError
			case w.Status != statusError:
				w.Status = statusPending
			}
		}
	}
	if z.Kind == zone.Secondary && p.Copy != nil {
		s := p.Copy(z.ID)
		w.TransferredAt = timestamp(s.Transferred)
		w.Copy = &copyState{timestamp(s.Checked), s.Expired, timestamp(s.Next), s.Problem}
		switch {
		case s.Expired:
			w.Status = statusError
		case s.Transferred.IsZero():
			w.Status = statusPending
		}
	}
	if w.Status != statusActive {
		w.Action = actionUpdate
		// A serial begins at the second in which the zone was made, and moves with every change of its records.
		if z.Updated.IsZero() && z.Version == 1 && int64(z.Serial) <= z.Created.Unix()+1 {
			w.Action = actionCreate
		}
	}
}

// status is the status of a zone in lists.
func (c *call) status(z zone.Zone) string {
	w := wireZone{Status: statusActive}
	c.addState(z, &w)
	return w.Status
}

// zoneListing is the list of zones with their state.
func (c *call) zoneListing() listing[zone.Zone] {
	l := zoneListing
	filters := map[string]func(zone.Zone) string{"status": c.status}
	for k, f := range l.filters {
		if k != "status" {
			filters[k] = f
		}
	}
	l.filters = filters
	return l
}

// pending makes the reply one to what is accepted and not yet everywhere.
func pending(rep reply, w wireZone) reply {
	if w.Status == statusPending {
		rep.status = http.StatusAccepted
	}
	return rep
}

// checkSecondary says whether a zone can be copied from its masters.
func (c *call) checkSecondary(z zone.Zone) error {
	if z.Kind == zone.Secondary && c.api.Peers.Refresh == nil {
		return badRequest("This server has no zones of type SECONDARY")
	}
	return c.checkMasters(z.Masters)
}

// checkMasters refuses names: who answers for one could give us any zone. Inner addresses are an administrator's to name: from
// where we stand, servers there may trust us with what they would not give to a tenant.
func (c *call) checkMasters(masters []string) error {
	for i, m := range masters {
		at, err := transfer.ParseMaster(m)
		if err != nil {
			return invalid(problem{[]any{"masters", i}, err.Error(), "format", "ip"})
		}
		a := at.Addr()
		inner := a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast()
		if inner && !c.scope.caller.IsAdmin() {
			return forbidden("The master %s is no public address; only an administrator may name it.", m)
		}
	}
	return nil
}

// refresh has a SECONDARY zone fetched, which is new or has other masters now.
func (c *call) refresh(z zone.Zone) {
	if z.Kind == zone.Secondary && c.api.Peers.Refresh != nil {
		c.api.Peers.Refresh(z.ID, false)
	}
}

// fetchFromMasters transfers a zone, whatever its serial.
func (c *call) fetchFromMasters() (reply, error) {
	err := c.view(func(v store.View) error {
		z, err := c.ownZone(v)
		if err != nil {
			return err
		}
		if z.Kind != zone.Secondary || c.api.Peers.Refresh == nil {
			return badRequest("Can't XFR a non Secondary zone.")
		}
		c.api.Peers.Refresh(z.ID, true)
		return nil
	})
	return reply{status: http.StatusAccepted}, err
}

// errSecondary says who changes a SECONDARY zone.
func errSecondary() *fault {
	return forbidden("The zone is of type SECONDARY: its record sets are changed at its masters.")
}
