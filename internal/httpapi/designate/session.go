package designate

import (
	"context"
	"io"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Session lets another API read zones and change record sets for the caller of one request. The rules are those of this
// API: who sees a zone, which record sets may be changed, quotas, and limits of memory.
type Session struct {
	c   *call
	api string
}

// Session returns a session for the project of the caller. api is the name of the other API in the history of zones.
func (a *API) Session(w http.ResponseWriter, r *http.Request, api string) *Session {
	a.init()
	who := httpapi.CallerOf(r.Context())
	return &Session{&call{api: a, settings: &a.Settings, w: w, r: r, scope: scope{caller: who, project: who.Project}}, api}
}

// View reads from the store. It calls fn again when fn needs more memory.
func (s *Session) View(fn func(store.View) error) error { return s.c.view(fn) }

// Zones returns the zones that the caller may see, sorted by name. Call it inside View.
func (s *Session) Zones(v store.View) ([]zone.Zone, error) { return s.c.visibleZones(v) }

// Zone returns a zone whose record sets the caller may change.
func (s *Session) Zone(v store.View, id uuid.UUID) (zone.Zone, error) {
	z, err := s.c.zoneByID(v, id)
	if err == nil && z.Kind == zone.Secondary {
		return z, errSecondary()
	}
	return z, err
}

// MinTTL returns the smallest TTL of a record set.
func (s *Session) MinTTL() uint32 { return s.c.settings.MinTTL }

// Commit commits an edit of n record sets.
func (s *Session) Commit(n int, fn func(*publish.Tx) error) error {
	actor := s.c.actor()
	actor.API = s.api
	if n > manySets {
		return s.c.api.Publisher.CommitAlone(context.WithoutCancel(s.c.r.Context()), actor, fn)
	}
	return s.c.api.Publisher.Commit(s.c.r.Context(), actor, fn)
}

// Put creates a record set, or changes its TTL and records.
func (s *Session) Put(tx *publish.Tx, z zone.Zone, set zone.RecordSet) error {
	_, err := s.c.applyOne(tx, z, change{action: "upsert", name: set.Name, typ: set.Type,
		values: values{ttl: true, records: true, set: set}})
	return err
}

// Delete deletes a record set.
func (s *Session) Delete(tx *publish.Tx, z zone.Zone, set zone.RecordSet) error {
	_, err := s.c.applyOne(tx, z, change{action: "delete", name: set.Name, typ: set.Type})
	return err
}

// Stream sends the body that write produces. write calls View.
func (s *Session) Stream(media string, write func(io.Writer) error) {
	s.c.writeStream(reply{status: http.StatusOK, media: media, stream: write})
}

// Reason returns the text of an error for the client. It logs an error that only the log may show.
func (s *Session) Reason(err error) string { return s.c.asFault(err).message }
