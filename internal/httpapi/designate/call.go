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
	"github.com/nameplane/nameplane/internal/zonefile"
)

// call is one request, with everything that its handler needs.
type call struct {
	api      *API
	settings *Settings
	w        http.ResponseWriter
	r        *http.Request
	route    Route
	scope    scope
	lag      lag
}

// scope is the project that a request acts for, and the extra rights that its headers ask for.
type scope struct {
	caller       httpapi.Caller
	project      string // the caller's project, or the one that an administrator acts for
	all          bool   // the caller sees the resources of every project
	editManaged  bool
	deleteShares bool
	hideCounts   bool
}

// reply is the result of a handler: a body in JSON, or a stream.
type reply struct {
	status   int
	body     any // encoded as JSON; nil: no body
	location string
	etag     string
	media    string                // the media type of stream
	stream   func(io.Writer) error // see writeStream
}

// demand is a set of conditions that the caller, and the zone in the path, must meet.
type demand uint8

const (
	needReader demand = 1 << iota
	needMember
	needAdmin
	needPrimary // the route edits record sets; those of a SECONDARY zone are edited at its masters
	isZoneFile  // the reply is a zone file and not JSON

	needNothing demand = 0
)

// allow returns nil when the caller has the role that the route needs, and 403 otherwise. The roles are those of
// OpenStack's default policies: reader, member and admin.
func (c *call) allow(need demand) error {
	who := c.scope.caller
	switch {
	case need&needAdmin != 0 && !who.IsAdmin():
		return forbidden("Only administrators may use this operation.")
	case need != needNothing && len(who.Roles) == 0:
		return forbidden("The caller has no role in this project.")
	case need&needMember != 0 && !who.CanWrite():
		return forbidden("Changes need the role member; the caller's role can only read.")
	}
	return nil
}

// readScope reads the headers and query parameters that select the project and ask for extra rights. They are those of
// Designate. A caller without the rights gets 403, also where the header would change nothing.
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
		return forbidden("Only administrators may act for other projects, edit managed records or delete for good.")
	}
	s.project = cmp.Or(sudo, who.Project)
	c.scope = s
	return nil
}

func (c *call) header(name string) string { return c.r.Header.Get(name) }

// isTrue reports whether s is one of the texts that Designate (oslo.utils) reads as true.
func isTrue(s string) bool {
	switch strings.ToLower(s) {
	case "true", "1", "yes", "on", "t", "y":
		return true
	}
	return false
}

// id returns a path parameter that must be a UUID.
func (c *call) id(param string) (uuid.UUID, error) {
	s := c.r.PathValue(param)
	id, ok := parseID(s)
	if !ok {
		return id, refuse("invalid_uuid", "Invalid UUID %s: %s", c.idName(param), s)
	}
	return id, nil
}

// idNames are the names of the path parameter {id} in Designate's messages, by the path segment before it.
var idNames = map[string]string{
	"blacklists": "blacklist_id", "exports": "export_id", "imports": "import_id", "pools": "pool_id",
	"service_statuses": "service_id", "shares": "zone_share_id", "tlds": "tld_id",
	"transfer_accepts": "transfer_accept_id", "transfer_requests": "zone_transfer_request_id", "tsigkeys": "tsigkey_id",
}

// idName returns the name of a path parameter in Designate's messages.
func (c *call) idName(param string) string {
	before, _, found := strings.Cut(c.route.Pattern, "/{id}")
	if param != "id" || !found {
		return param
	}
	last := before[strings.LastIndexByte(before, '/')+1:]
	if c.route.Method == remove && (last == "exports" || last == "imports") {
		return "zone_" + idNames[last]
	}
	return idNames[last]
}

// parseID parses a UUID with hyphens. uuid.Parse also accepts URNs, braces and a form without hyphens.
func parseID(s string) (uuid.UUID, bool) {
	id, err := uuid.Parse(s)
	return id, err == nil && len(s) == 36
}

func (c *call) actor() store.Actor {
	return store.Actor{Who: c.scope.caller.Who, Project: c.scope.project, API: "designate",
		RequestID: httpapi.RequestID(c.r.Context())}
}

// commit runs an edit. It runs the edit again, from the state before it, when fn needs more memory.
func (c *call) commit(fn func(*publish.Tx) error) error {
	httpapi.EndTurn(c.r.Context())
	return c.withMemory(func() error { return c.api.Publisher.Commit(c.r.Context(), c.actor(), c.lifted(fn)) })
}

// lifted returns the edit without the quotas of records if the caller is an administrator. Quotas are for tenants.
func (c *call) lifted(fn func(*publish.Tx) error) func(*publish.Tx) error {
	if !c.scope.caller.IsAdmin() {
		return fn
	}
	return func(tx *publish.Tx) error {
		tx.LiftRecordQuotas()
		return fn(tx)
	}
}

// manySets is the number of record sets above which an edit does not share a group with the edits of others. Undoing
// this many takes about ten megabytes and ten milliseconds.
const manySets = 20_000

// commitSized commits an edit of n record sets.
func (c *call) commitSized(n int, fn func(*publish.Tx) error) error {
	if n > manySets {
		httpapi.EndTurn(c.r.Context())
		return c.api.Publisher.CommitAlone(context.WithoutCancel(c.r.Context()), c.actor(), c.lifted(fn))
	}
	return c.commit(fn)
}

// view reads from the store. It calls fn again when fn needs more memory.
func (c *call) view(fn func(store.View) error) error {
	return c.withMemory(func() error { return c.api.Publisher.View(fn) })
}

// viewed returns what fn reads from the store.
func viewed[T any](c *call, fn func(store.View) (T, error)) (out T, err error) {
	err = c.view(func(v store.View) (err error) {
		if out, err = fn(v); err != nil {
			out = *new(T) // see setPage
		}
		return err
	})
	return out, err
}

// url returns the address of a path of this API.
func (c *call) url(path string) string { return httpapi.BaseURL(c.r, c.settings.BaseURL) + path }

// created returns the reply to a create: 201 with a Location header.
func created(body any, self string) reply {
	return reply{status: http.StatusCreated, body: body, location: self}
}

// noContent is the reply to a delete without a body.
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

// Bounds on the streamed replies at a time: each has a file on disk.
const (
	maxDownloads        = 32
	maxProjectDownloads = 4
)

// writeStream writes a body to a file and then sends it. A body that is sent while it is produced would hold a View of
// the store open for as long as a slow client reads, and the store grows meanwhile with the changes of all projects.
// The status is sent already when an error of the second part comes, so such an error aborts the connection.
func (c *call) writeStream(rep reply) {
	if !c.api.downloads.Take(c.scope.project, maxProjectDownloads) {
		c.fail(&fault{status: http.StatusServiceUnavailable, kind: "service_unavailable",
			message: "Too many zones are being read; try again later."})
		return
	}
	defer c.api.downloads.Return(c.scope.project)
	f, err := zonefile.TempFile(c.settings.Spool)
	if err != nil {
		c.fail(spoolError(err))
		return
	}
	defer f.Close()
	if err = rep.stream(f); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		c.fail(spoolError(err))
		return
	}
	c.w.Header().Set("Content-Type", rep.media)
	c.w.WriteHeader(rep.status)
	if _, err := io.Copy(c.w, f); err != nil {
		c.api.Log.Error("reply ended early", "path", c.r.URL.Path, "err", err)
		panic(http.ErrAbortHandler) // the client must not mistake half a zone for a whole one
	}
}

// marshal encodes a reply. Unlike json.Marshal it leaves <, > and & as they are, and ends with a newline.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if l, ok := v.(collection); ok {
		err := l.encode(&b, e)
		return b.Bytes(), err
	}
	err := e.Encode(v)
	return b.Bytes(), err
}
