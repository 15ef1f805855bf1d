package designate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// call is one request and what its handler needs.
type call struct {
	api      *API
	settings *Settings
	w        http.ResponseWriter
	r        *http.Request
	route    Route
	scope    scope
}

// scope is the project that a request acts for, and the special rights that it asked for.
type scope struct {
	caller       httpapi.Caller
	project      string // the caller's, or the one that an administrator acts for
	all          bool   // the caller sees the resources of every project
	editManaged  bool
	deleteShares bool
	hideCounts   bool
}

// reply is what a handler returns.
type reply struct {
	status   int
	body     any // encoded as JSON; nil: no body
	location string
	etag     string
	media    string // of stream
	stream   func(io.Writer) error
}

// demand is what a route needs of the caller and of the zone in its path.
type demand uint8

const (
	needReader demand = 1 << iota
	needMember
	needAdmin
	needPrimary // the route edits record sets, and those of a SECONDARY zone are changed at its masters

	needNothing demand = 0
)

// allow reports whether the caller has the role that the route needs.
func (c *call) allow(need demand) error {
	who := c.scope.caller
	switch {
	case need&needAdmin != 0 && !who.IsAdmin():
		return forbidden("This is for administrators.")
	case need != needNothing && len(who.Roles) == 0:
		return forbidden("The caller has no role in this project.")
	case need&needMember != 0 && !who.CanWrite():
		return forbidden("Changing things needs the role member; yours may only read.")
	}
	return nil
}

// readScope reads the headers and query parameters that select the project and ask for special rights.
func (c *call) readScope() error {
	who := httpapi.CallerOf(c.r.Context())
	s := scope{caller: who}
	sudo := cmp.Or(c.header("X-Auth-Sudo-Project-Id"), c.header("X-Auth-Sudo-Tenant-Id"))
	q, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil { // URL.Query would drop the parameter, and a list would be longer than asked for
		return badRequest("The query cannot be read: %v", err)
	}
	hard := isTrue(c.header("X-Designate-Hard-Delete"))
	s.all = isTrue(c.header("X-Auth-All-Projects")) || isTrue(q.Get("all_projects")) || isTrue(q.Get("all_tenants"))
	s.editManaged = isTrue(c.header("X-Designate-Edit-Managed-Records")) || isTrue(q.Get("edit_managed_records"))
	s.deleteShares = isTrue(c.header("X-Designate-Delete-Shares"))
	s.hideCounts = isTrue(c.header("Openstack-Dns-Hide-Counts"))
	if (sudo != "" || s.all || hard || s.editManaged) && !who.IsAdmin() {
		return forbidden("Acting for other projects, editing managed records and deleting for good is for administrators.")
	}
	s.project = cmp.Or(sudo, who.Project)
	c.scope = s
	return nil
}

func (c *call) header(name string) string { return c.r.Header.Get(name) }

func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on", "t", "y":
		return true
	}
	return false
}

// id returns a path parameter that must be a UUID.
func (c *call) id(param string) (uuid.UUID, error) {
	return parseID(c.r.PathValue(param))
}

func parseID(s string) (uuid.UUID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != 36 { // uuid.Parse accepts other forms too
		return id, &fault{status: http.StatusBadRequest, kind: "invalid_uuid", message: "Invalid UUID: " + s}
	}
	return id, nil
}

func (c *call) actor() store.Actor {
	return store.Actor{Who: c.scope.caller.Who, Project: c.scope.project, Door: "designate",
		RequestID: httpapi.RequestID(c.r.Context())}
}

func (c *call) commit(fn func(*publish.Tx) error) error {
	return c.api.Publisher.Commit(c.r.Context(), c.actor(), fn)
}

// commitSized commits an edit of n record sets. A very large edit does not share a group with the edits of others.
func (c *call) commitSized(n int, fn func(*publish.Tx) error) error {
	const many = 20_000 // undoing this many takes some ten megabytes and milliseconds
	if n > many {
		return c.api.Publisher.CommitAlone(context.WithoutCancel(c.r.Context()), c.actor(), fn)
	}
	return c.commit(fn)
}

func (c *call) view(fn func(store.View) error) error { return c.api.Publisher.View(fn) }

// viewed returns what fn reads from the store.
func viewed[T any](c *call, fn func(store.View) (T, error)) (T, error) {
	return publish.Read(c.api.Publisher, fn)
}

// url returns the address of a path of this API.
func (c *call) url(path string) string { return httpapi.BaseURL(c.r, c.settings.BaseURL) + path }

// created returns the reply to a create: 201 with a Location header.
func created(body any, self string) reply {
	return reply{status: http.StatusCreated, body: body, location: self}
}

// noContent is the reply without a body.
var noContent = reply{status: http.StatusNoContent}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

func (c *call) write(rep reply) {
	h := c.w.Header()
	if rep.location != "" {
		h.Set("Location", rep.location)
	}
	if rep.etag != "" {
		h.Set("ETag", rep.etag)
	}
	if rep.stream != nil {
		c.writeStream(rep)
		return
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
	h.Set("Content-Length", strconv.Itoa(len(b)))
	c.w.WriteHeader(rep.status)
	_, _ = c.w.Write(b) // the client may have closed the connection; ignore the error
}

func (c *call) writeStream(rep reply) {
	c.w.Header().Set("Content-Type", rep.media)
	c.w.WriteHeader(rep.status)
	if err := rep.stream(c.w); err != nil {
		c.api.Log.Error("reply ended early", "path", c.r.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // the client must not take half a zone for a whole one
	}
}

// marshal encodes a reply. Unlike json.Marshal it leaves <, > and & as they are, and ends with a newline.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}
