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
	Location  *string `json:"location,omitempty"` // of an export
	ZoneID    *string `json:"zone_id"`
	ProjectID string  `json:"project_id"`
	Version   int     `json:"version"`
}

// tasks is one of the two kinds.
type tasks struct {
	kind              store.Kind
	name, path, title string
}

var (
	exportTasks = tasks{store.KindZoneExport, "exports", "/v2/zones/tasks/exports", "ZoneExport"}
	importTasks = tasks{store.KindZoneImport, "imports", "/v2/zones/tasks/imports", "ZoneImport"}
)

func (k tasks) listing() listing[task] {
	return listing[task]{
		name: k.name,
		id:   func(t task) string { return t.ID },
		keys: []string{"created_at", "id", "updated_at", "status"},
		filters: map[string]func(task) string{
			"status":  func(t task) string { return t.Status },
			"message": func(t task) string { return value(t.Message) },
			"zone_id": func(t task) string { return value(t.ZoneID) },
		},
		sorts: map[string]func(a, b task) int{
			"created_at": byAge(func(t task) timestamp { return t.CreatedAt }),
			"updated_at": byAge(func(t task) timestamp { return t.UpdatedAt }),
			"id":         func(a, b task) int { return cmp.Compare(a.ID, b.ID) },
			"status":     func(a, b task) int { return cmp.Compare(a.Status, b.Status) },
		},
	}
}

func (k tasks) link(c *call, t task) task {
	t.Links = &links{Self: c.url(k.path + "/" + t.ID)}
	if t.Location != nil {
		t.Links.Export = t.Links.Self + "/export"
	}
	return t
}

func (k tasks) list(c *call) (reply, error) {
	l := k.listing()
	q, err := l.query(c)
	if err != nil {
		return reply{}, err
	}
	var mine []task
	err = c.view(func(v store.View) error {
		all, err := store.ObjectsOf[task](v, k.kind)
		for _, t := range all {
			if c.scope.all || t.ProjectID == c.scope.project {
				mine = append(mine, t)
			}
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	l.sortByAge(mine)
	p, err := l.cut(mine, q)
	return l.reply(c, q, p, func(t task) any { return k.link(c, t) }), err
}

// get is the task of the path.
func (k tasks) get(c *call, v store.View) (task, error) {
	var t task
	id, err := c.id("id")
	if err != nil {
		return t, err
	}
	err = v.Object(k.kind, id.String(), &t)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.scope.all && t.ProjectID != c.scope.project {
		err = notFound("zone_"+k.name[:len(k.name)-1], k.title)
	}
	return t, err
}

func (k tasks) show(c *call) (reply, error) {
	var t task
	err := c.view(func(v store.View) (err error) {
		t, err = k.get(c, v)
		return err
	})
	return ok(k.link(c, t)), err
}

func (k tasks) remove(c *call) (reply, error) {
	err := c.commit(func(tx *publish.Tx) error {
		t, err := k.get(c, tx.View)
		if err != nil {
			return err
		}
		return tx.DeleteObject(k.kind, t.ID)
	})
	return noContent, err
}

// createExport makes an export, which is complete at once: the file is written from the zone while it is fetched.
func (c *call) createExport() (reply, error) {
	var t task
	err := c.commit(func(tx *publish.Tx) error {
		z, err := c.zone(tx.View)
		if err != nil {
			return err
		}
		q, err := c.quotasOf(tx.View, z.Project)
		if err != nil {
			return err
		}
		if err := within("api_export_size", z.Sets, q.APIExportSize); err != nil {
			return err
		}
		id := z.ID.String()
		t = task{resourceMeta: newMeta(tx), Status: statusComplete, ZoneID: &id, ProjectID: c.scope.project, Version: 1}
		where := "designate://v2/zones/tasks/exports/" + t.ID + "/export"
		t.Location = &where
		return tx.PutObject(store.KindZoneExport, t.ID, t)
	})
	if err != nil {
		return reply{}, err
	}
	t = exportTasks.link(c, t)
	return reply{status: http.StatusAccepted, body: t, location: t.Links.Self}, nil
}

func (c *call) fetchExport() (reply, error) {
	var z zone.Zone
	err := c.view(func(v store.View) error {
		t, err := exportTasks.get(c, v)
		if err == nil {
			z, err = c.zoneByID(v, uuid.MustParse(*t.ZoneID))
		}
		return err
	})
	return reply{status: http.StatusOK, media: "text/dns", stream: func(w io.Writer) error {
		return c.view(func(v store.View) error { return writeZone(v, z.ID, w) })
	}}, err
}

// writeZone writes a zone as a file. It reads as it writes, so a slow client holds a View of the store, which costs the
// store space but no other client time.
func writeZone(v store.View, id uuid.UUID, w io.Writer) error {
	z, err := v.Zone(id)
	if err != nil {
		return err
	}
	return zonefile.Write(w, z.Name, z.TTL, servedSets(v, z))
}

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
