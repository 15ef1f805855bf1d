package designate

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// resourceMeta holds the fields that are common to all resources which the store keeps in their JSON form.
type resourceMeta struct {
	ID        string    `json:"id"`
	CreatedAt timestamp `json:"created_at"`
	UpdatedAt timestamp `json:"updated_at"`
	Links     *links    `json:"links,omitempty"`
}

// newMeta returns the fields of a new resource. UUIDs of version 7 sort by age (RFC 9562 §5.7).
func newMeta(tx *publish.Tx) resourceMeta {
	return resourceMeta{ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: timestamp(tx.Now())}
}

func (m *resourceMeta) meta() *resourceMeta { return m }

// object is a pointer to a wire type that embeds resourceMeta.
type object[T any] interface {
	*T
	meta() *resourceMeta
}

// resource describes a kind of objects, and implements list, create, show, update and delete for it. Only
// administrators may use kinds without owners; their routes check that.
type resource[T any, P object[T]] struct {
	kind    store.Kind // the kind in the store, and in the types of errors
	title   string     // the name of the kind in descriptions
	object  string     // the name of the kind in messages, as Designate spells it; default title
	path    string
	listing listing[T]
	present func(*call, P) // changes an object to what the caller may see; nil: no change

	// For objects of projects, see owned.go:
	owners func(T) []string // returns the projects that see the object; nil: only administrators do
	ended  func(T) bool     // reports whether the object is finished, and so can expire
	zone   func(T) string   // returns the zone, which may have one open object of the kind; nil: any number

	// For create and update:
	keys []string // the keys of the fields that can be changed
	read func(in *input, isNew bool) (apply func(P))
	same func(a, b T) bool // reports whether two objects are duplicates

	check func(store.View, T) error // checks what the object refers to, inside the commit; nil: nothing
}

func (res resource[T, P]) name() string { return cmp.Or(res.object, res.title) }

func (res resource[T, P]) link(c *call, item T) T {
	P(&item).meta().Links = &links{Self: c.url(res.path + "/" + P(&item).meta().ID)}
	if res.present != nil {
		res.present(c, &item)
	}
	return item
}

// created returns the reply to a request that created an item.
func (res resource[T, P]) created(c *call, status int, item T) reply {
	item = res.link(c, item)
	return reply{status: status, body: item, location: P(&item).meta().Links.Self}
}

func (res resource[T, P]) sees(c *call, item T) bool {
	return res.owners == nil || c.scope.all || slices.Contains(res.owners(item), c.scope.project)
}

func (res resource[T, P]) list(c *call) (reply, error) {
	return res.listing.list(c, func(v store.View) ([]T, error) {
		if res.owners != nil && !c.scope.all {
			return res.of(v, c.scope.project)
		}
		return store.ObjectsOf[T](v, res.kind)
	}, res.link)
}

func (res resource[T, P]) create(c *call) (reply, error) {
	in, err := c.input(string(res.kind), res.keys...)
	if err != nil {
		return reply{}, err
	}
	apply := res.read(in, true)
	if in.err() != nil {
		return reply{}, in.err()
	}
	var item T
	apply(&item)
	err = c.commit(func(tx *publish.Tx) error {
		*P(&item).meta() = newMeta(tx)
		return res.put(tx, item)
	})
	return res.created(c, http.StatusCreated, item), err
}

// put writes an item. It returns 409 when another item is a duplicate.
func (res resource[T, P]) put(tx *publish.Tx, item T) error {
	if res.check != nil {
		if err := res.check(tx.View, item); err != nil {
			return err
		}
	}
	all, err := store.ObjectsOf[T](tx.View, res.kind)
	if err != nil {
		return err
	}
	id := P(&item).meta().ID
	for _, o := range all {
		if P(&o).meta().ID != id && res.same(o, item) {
			return duplicate(string(res.kind), res.name())
		}
	}
	return tx.PutObject(res.kind, id, item)
}

// get returns the item of the path, if the caller may see it.
func (res resource[T, P]) get(c *call, v store.View) (T, error) {
	var item T
	id, err := c.id("id")
	if err != nil {
		return item, err
	}
	err = v.Object(res.kind, id.String(), &item)
	if errors.Is(err, store.ErrNotFound) || err == nil && !res.sees(c, item) {
		err = notFound(string(res.kind), res.name())
	}
	return item, err
}

func (res resource[T, P]) show(c *call) (reply, error) {
	item, err := viewed(c, func(v store.View) (T, error) { return res.get(c, v) })
	return ok(res.link(c, item)), err
}

func (res resource[T, P]) update(c *call) (reply, error) {
	in, err := c.anyInput(string(res.kind))
	if err != nil {
		return reply{}, err
	}
	apply := res.read(in, false)
	if in.err() != nil {
		return reply{}, in.err()
	}
	rest := in.repeated(res.keys...)
	var item T
	err = c.commit(func(tx *publish.Tx) error {
		if item, err = res.get(c, tx.View); err != nil {
			return err
		}
		if err := rest.check(func() any { return res.link(c, item) }); err != nil {
			return err
		}
		apply(&item)
		P(&item).meta().UpdatedAt = timestamp(tx.Now())
		return res.put(tx, item)
	})
	return ok(res.link(c, item)), err
}

func (res resource[T, P]) remove(c *call) (reply, error) {
	err := c.commit(func(tx *publish.Tx) error {
		item, err := res.get(c, tx.View)
		if err != nil {
			return err
		}
		return res.drop(tx, item)
	})
	return noContent, err
}

// routes returns the routes of a kind that only administrators may use.
func (res resource[T, P]) routes() []Route {
	one := res.path + "/{id}"
	return []Route{
		{http.MethodGet, res.path, "List " + res.title + "s", needAdmin, res.list},
		{http.MethodPost, res.path, "Create a " + res.title, needAdmin, res.create},
		{http.MethodGet, one, "Show a " + res.title, needAdmin, res.show},
		{http.MethodPatch, one, "Change a " + res.title, needAdmin, res.update},
		{http.MethodDelete, one, "Delete a " + res.title, needAdmin, res.remove},
	}
}
