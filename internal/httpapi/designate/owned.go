package designate

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Exports, imports, transfer requests and transfer accepts belong to projects. Each project that sees an object has a
// row of store.KindOwned with its id, so a list does not read the objects of other projects.
//
// Finished objects expire after keepEnded, and a project keeps the newest maxEnded of each kind. Otherwise a client
// that exports in a loop would fill the store.
const (
	keepEnded = 7 * 24 * time.Hour
	maxEnded  = 1000
	tidyEvery = time.Hour
	tidyStep  = 100 // objects that one commit lists or deletes
)

// The keys of KindOwned are ids of objects with one of these prefixes. So ended objects form a range of their own,
// oldest first.
const (
	markOpen  = "a"
	markEnded = "f"
)

func (res resource[T, P]) mark(item T) string {
	if res.ended(item) {
		return markEnded
	}
	return markOpen
}

func (res resource[T, P]) listKind(project string) store.Kind {
	return store.KindOwned.Of(string(res.kind) + " " + project)
}

// of returns the objects that a project sees.
func (res resource[T, P]) of(v store.View, project string) (out []T, err error) {
	err = v.EachObject(res.listKind(project), func(id string, _ []byte) (bool, error) {
		var item T
		if err := v.Object(res.kind, id[len(markOpen):], &item); err != nil {
			return false, err
		}
		if slices.Contains(res.owners(item), project) {
			out = append(out, item)
		}
		return true, nil
	})
	return out, err
}

// keep writes an object of a project and lists it.
func (res resource[T, P]) keep(tx *publish.Tx, item T) error {
	id, mark := P(&item).meta().ID, res.mark(item)
	if err := tx.PutObject(res.kind, id, item); err != nil {
		return err
	}
	if err := res.markZone(tx, item, mark == markOpen); err != nil {
		return err
	}
	for _, project := range res.owners(item) {
		list := res.listKind(project)
		if err := tx.PutObject(list, mark+id, true); err != nil {
			return err
		}
		if mark == markOpen {
			continue
		}
		if err := forget(tx, list, markOpen+id); err != nil {
			return err
		}
		if err := res.trim(tx, list); err != nil {
			return err
		}
	}
	return nil
}

// trim deletes the oldest ended object of a list when there are more than maxEnded. Every call of keep adds at most
// one, so one deletion is enough.
func (res resource[T, P]) trim(tx *publish.Tx, list store.Kind) error {
	n, oldest := 0, ""
	err := tx.EachObjectAfter(list, markEnded, func(id string, _ []byte) (bool, error) {
		if n++; n == 1 || sortsByAge(oldest) && !sortsByAge(id) {
			oldest = id
		}
		return true, nil
	})
	if err != nil || n <= maxEnded {
		return err
	}
	var item T
	if err := tx.Object(res.kind, oldest[len(markEnded):], &item); err != nil {
		return err
	}
	return res.drop(tx, item)
}

// sortsByAge reports whether an id of a list sorts by age. Earlier builds wrote random ids (UUID version 4); their
// objects are older than all others.
func sortsByAge(id string) bool {
	u, err := uuid.Parse(id[len(markEnded):])
	return err == nil && u.Version() == 7
}

// drop deletes an object and its rows in the lists of projects.
func (res resource[T, P]) drop(tx *publish.Tx, item T) error {
	id := P(&item).meta().ID
	if res.owners != nil {
		if err := res.markZone(tx, item, false); err != nil {
			return err
		}
		for _, project := range res.owners(item) {
			for _, mark := range []string{markOpen, markEnded} {
				if err := forget(tx, res.listKind(project), mark+id); err != nil {
					return err
				}
			}
		}
	}
	return tx.DeleteObject(res.kind, id)
}

// markZone records that an object is the open one of its zone, or that it is no longer open. A zone has at most one
// open object of a kind with a zone function: one transfer request.
func (res resource[T, P]) markZone(tx *publish.Tx, item T, open bool) error {
	if res.zone == nil {
		return nil
	}
	id, zoneID := P(&item).meta().ID, res.zone(item)
	if open {
		return tx.PutObject(store.KindZoneRequest, zoneID, id)
	}
	var marked string
	if err := tx.Object(store.KindZoneRequest, zoneID, &marked); err == nil && marked != id {
		return nil
	}
	return forget(tx, store.KindZoneRequest, zoneID)
}

// forget deletes an object. It is no error if the object does not exist.
func forget(tx *publish.Tx, kind store.Kind, id string) error {
	if err := tx.DeleteObject(kind, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// tidy deletes expired objects, and adds to the lists the objects that a build without lists stored.
func (res resource[T, P]) tidy(ctx context.Context, a *API) error {
	for after := ""; ; {
		due, err := res.untidied(a.Publisher, &after)
		if err != nil || len(due) == 0 {
			return err
		}
		err = a.Publisher.Commit(ctx, ownActor, func(tx *publish.Tx) error {
			for _, id := range due {
				var item T
				if err := tx.Object(res.kind, id, &item); errors.Is(err, store.ErrNotFound) {
					continue // deleted meanwhile
				} else if err != nil {
					return err
				}
				put := res.keep
				if res.expired(item, tx.Now()) {
					put = res.drop
				}
				if err := put(tx, item); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// untidied returns the ids of at most tidyStep objects for tidy, and sets after to the last id that it has read. It
// reads in a View: a scan of all objects in a commit would block other changes.
func (res resource[T, P]) untidied(p *publish.Publisher, after *string) (due []string, err error) {
	now := time.Now()
	err = p.View(func(v store.View) error {
		return store.EachOf(v, res.kind, *after, func(id string, item T) (bool, error) {
			*after = id
			listed := func(project string) bool {
				return v.Object(res.listKind(project), res.mark(item)+id, new(bool)) == nil
			}
			if owners := res.owners(item); res.expired(item, now) || !listed(owners[0]) {
				due = append(due, id)
			}
			return len(due) < tidyStep, nil
		})
	})
	return due, err
}

func (res resource[T, P]) expired(item T, now time.Time) bool {
	m := P(&item).meta()
	last := time.Time(m.UpdatedAt)
	if last.IsZero() {
		last = time.Time(m.CreatedAt)
	}
	return res.ended(item) && now.Sub(last) > keepEnded
}

// ownActor makes the changes that no client asked for.
var ownActor = store.Actor{Who: "nameplane", API: "designate"}

// tidy runs resource.tidy for every kind of object that belongs to projects.
func (a *API) tidy(ctx context.Context) {
	for _, tidy := range []func(context.Context, *API) error{
		exportTasks.tidy, importTasks.tidy, transferRequests.tidy, transferAccepts.tidy,
	} {
		if err := ignoreUnavailable(tidy(ctx, a)); err != nil {
			a.Log.Error("delete finished tasks and requests", "error", err)
		}
	}
}
