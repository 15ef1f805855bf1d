package powerdns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// call is one request, with everything that its handler needs.
type call struct {
	api   *API
	w     http.ResponseWriter
	r     *http.Request
	route Route
	rules designate.Rules
}

// reply is the result of a handler.
type reply struct {
	status int
	body   any // encoded as JSON; nil: no body
	large  *large
	tag    string
}

// noContent is the reply to a change.
var noContent = reply{status: http.StatusNoContent}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

// result is the body of a reply to a command.
type result struct {
	Result string `json:"result"`
}

// dispatch checks whether the caller may use the route, and runs its handler.
func (c *call) dispatch() (rep reply, err error) {
	// Check the role before the zone is looked up: an error about the zone would say whether it exists.
	if c.rules, err = c.api.Zones.Rules(c.r); err != nil {
		return reply{}, err
	}
	switch {
	case c.route.need == needAdmin && !c.rules.Admin():
		return reply{}, &fault{status: http.StatusForbidden, message: "This needs the role admin."}
	case c.route.need == needMember && !c.rules.CanWrite():
		return reply{}, &fault{status: http.StatusForbidden, message: "Changes need the role member."}
	}
	return c.route.handle(c)
}

// commit runs an edit. It runs the edit again, from the state before it, when fn needs more memory.
func (c *call) commit(fn func(*publish.Tx) error) error {
	ctx := c.r.Context()
	httpapi.EndTurn(ctx)
	return httpapi.WithMemory(ctx, func() error {
		return c.api.Publisher.Commit(ctx, c.rules.Actor(actorAPI), c.rules.Lifted(fn))
	})
}

// actorAPI is the name of this API in the journal.
const actorAPI = "powerdns"

// commitSized commits an edit of n record sets. A very large edit does not share a group with the edits of others.
func (c *call) commitSized(n int, fn func(*publish.Tx) error) error {
	const many = 20_000 // undoing this many takes about ten megabytes and ten milliseconds
	if n > many {
		httpapi.EndTurn(c.r.Context())
		// A very large edit that the client stops waiting for would be done again by its next attempt. So it runs
		// to its end.
		return c.api.Publisher.CommitAlone(context.WithoutCancel(c.r.Context()), c.rules.Actor(actorAPI), fn)
	}
	return c.commit(fn)
}

// view reads from the store. It calls fn again when fn needs more memory.
func (c *call) view(fn func(store.View) error) error {
	return httpapi.WithMemory(c.r.Context(), func() error { return c.api.Publisher.View(fn) })
}

// zone returns the zone of the path, if the caller sees it.
func (c *call) zone(v store.View) (zone.Zone, error) { return c.find(v, c.rules.Zone) }

// ownZone returns the zone of the path for a change that only its owner may make.
func (c *call) ownZone(v store.View) (zone.Zone, error) { return c.find(v, c.rules.OwnZone) }

func (c *call) find(v store.View, find func(store.View, dnsname.Name) (zone.Zone, error)) (zone.Zone, error) {
	n, err := nameOfID(c.r.PathValue("zone_name"))
	if err != nil {
		return zone.Zone{}, err
	}
	z, err := find(v, n)
	// A zone of another project gets the same reply as one that does not exist.
	if errors.Is(err, store.ErrNotFound) {
		err = status(http.StatusNotFound)
	}
	return z, err
}

// viewZone reads the zone of the path, in the form that find returns.
func (c *call) viewZone(find func(store.View) (zone.Zone, error)) (z zone.Zone, err error) {
	err = c.view(func(v store.View) error {
		z, err = find(v)
		return err
	})
	return z, err
}

// ifMatch compares the request's If-Match with the entity tag of a zone. Call it inside the commit: of two writers with
// the same tag, only one succeeds then.
func (c *call) ifMatch(v store.View, z zone.Zone) error {
	want := c.r.Header.Values("If-Match")
	if len(want) == 0 {
		return nil
	}
	tag, err := c.rules.Tag(v, z)
	if err != nil || httpapi.HasTag(want, func(t string) bool { return designate.SameTag(t, tag) }) {
		return err
	}
	return store.ErrChanged
}

func (c *call) write(rep reply) {
	h := c.w.Header()
	if rep.large != nil {
		c.send(rep)
		return
	}
	if rep.tag != "" {
		h.Set("ETag", rep.tag)
	}
	if rep.body == nil {
		c.w.WriteHeader(rep.status)
		return
	}
	b, err := marshal(rep.body)
	if err != nil {
		c.fail(err)
		return
	}
	h.Set("Content-Type", "application/json")
	// net/http sends a body of more than 2 KiB in chunks unless the length is set.
	h.Set("Content-Length", strconv.Itoa(len(b)))
	c.w.WriteHeader(rep.status)
	_, _ = c.w.Write(b) // the client may have closed the connection; ignore the error
}

// marshal encodes a reply. Unlike json.Marshal it leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
