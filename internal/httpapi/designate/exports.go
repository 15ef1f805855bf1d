package designate

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"net/http"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// task is an export or an import of a zone file.
type task struct {
	resourceMeta
	Status    string  `json:"status"`
	Message   *string `json:"message"`
	Location  *string `json:"location,omitempty"` // only exports have one
	ZoneID    *string `json:"zone_id"`
	ProjectID string  `json:"project_id"`
	Version   int     `json:"version"`
}

var (
	exportTasks = tasks(store.KindZoneExport, "exports", "ZoneExport")
	importTasks = tasks(store.KindZoneImport, "imports", "ZoneImport")
)

func tasks(kind store.Kind, name, title string) resource[task, *task] {
	return resource[task, *task]{
		kind: kind, title: title, path: "/v2/zones/tasks/" + name,
		owners: func(t task) []string { return []string{t.ProjectID} },
		ended:  func(t task) bool { return t.Status != statusPending },
		present: func(c *call, t *task) {
			switch {
			case t.Location != nil:
				t.Links.Export = t.Links.Self + "/export"
			case t.ZoneID != nil: // an import that is COMPLETE
				t.Links.Zone = c.url("/v2/zones/" + *t.ZoneID)
			}
		},
		listing: newListing(name, map[string]func(task) string{
			"status":  func(t task) string { return t.Status },
			"message": func(t task) string { return value(t.Message) },
			"zone_id": func(t task) string { return value(t.ZoneID) },
		}, "status"),
	}
}

// createExport creates an export. It is COMPLETE at once: fetchExport writes the file from the zone when the client
// reads it. The reply is 202 nevertheless, because clients of Designate expect that and poll the task.
func (c *call) createExport() (reply, error) {
	var t task
	err := c.commit(func(tx *publish.Tx) error {
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		q, err := c.api.Publisher.QuotasOf(tx.View, z.Project)
		if err != nil {
			return err
		}
		if q.APIExportSize >= 0 && z.Sets > q.APIExportSize {
			return &publish.QuotaError{Resource: "api_export_size", N: z.Sets, Most: q.APIExportSize}
		}
		t = task{resourceMeta: newMeta(tx), Status: statusComplete, ZoneID: new(z.ID.String()),
			ProjectID: c.scope.project, Version: 1}
		t.Location = new("designate://v2/zones/tasks/exports/" + t.ID + "/export")
		return exportTasks.keep(tx, t)
	})
	return exportTasks.created(c, http.StatusAccepted, t), err
}

// fetchExport streams the zone file. The caller must still own the zone: an export is not a copy.
func (c *call) fetchExport() (reply, error) {
	var z zone.Zone
	err := c.view(func(v store.View) error {
		t, err := exportTasks.get(c, v)
		if err == nil {
			z, err = c.ownZoneByID(v, uuid.MustParse(*t.ZoneID))
		}
		return cmp.Or(err, c.need(streamMemory))
	})
	return reply{status: http.StatusOK, media: "text/dns", stream: func(w io.Writer) error {
		return c.view(func(v store.View) error { return writeZone(v, z.ID, w) })
	}}, err
}

// writeZone writes a zone as a file.
func writeZone(v store.View, id uuid.UUID, w io.Writer) error {
	z, err := v.Zone(id)
	if err != nil {
		return err
	}
	return zonefile.Write(w, z.Name, z.TTL, servedSets(v, z))
}

// servedSets returns the record sets of a zone as they are served, and each ALIAS with its target.
func servedSets(v store.View, z zone.Zone) iter.Seq2[rr.Set, error] {
	errStop := errors.New("the reader stopped")
	return func(yield func(rr.Set, error) bool) {
		err := v.Served(z, func(s rr.Set) error {
			if s.Type == rr.TypeALIAS {
				var err error
				if s, err = aliasSet(v, z, s.Name); err != nil {
					return err
				}
			}
			if len(s.Data) > 0 && !yield(s, nil) {
				return errStop
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStop) {
			yield(rr.Set{}, err)
		}
	}
}
