// Package servermgmt serves the management API of the DNS server that an EdgeGallery mepserver drives, in both
// generations it had, with the calls for reading that neither had.
package servermgmt

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// API serves the records of a Service.
type API struct {
	Service *mec.Service
	Log     *slog.Logger // default: none

	// EdgeGalleryStatus answers what is there already with 400, and what is not with 400 to PUT and 500 to DELETE, as
	// the server did that this one takes the place of. Without it they are 409 and 404.
	EdgeGalleryStatus bool
}

// Route is one operation. A word of Pattern in braces stands for one path segment.
type Route struct {
	Method, Pattern, Description string

	handle func(*call) error
}

const (
	records  = httpapi.ServerManagementPath + "rrecord"
	atName   = records + "/{fqdn}"
	oneSet   = atName + "/{type}"
	zoneList = httpapi.ServerManagementPath + "zones"
	health   = "/health"
)

// Routes lists every operation of the API.
func Routes() []Route {
	return []Route{
		{http.MethodGet, records, "List the records of the DNS server", (*call).list},
		{http.MethodPut, records, "Put many records, or none", (*call).putBatch},
		{http.MethodPost, records, "Create records", (*call).create},
		{http.MethodGet, atName, "List the records of a name", (*call).listName},
		{http.MethodGet, oneSet, "Show a record", (*call).show},
		{http.MethodPut, oneSet, "Replace a record", (*call).replace},
		{http.MethodDelete, oneSet, "Delete a record", (*call).remove},
		{http.MethodGet, zoneList, "List the zones that have records", (*call).listZones},
		{http.MethodGet, health, "Tell that the DNS server lives", (*call).health},
	}
}

// Register adds the routes to a mux that is inside the frame.
func (a API) Register(mux *http.ServeMux) {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	pattern := func(r Route) (string, string) { return r.Method, r.Pattern }
	mechttp.Register(mux, Routes(), pattern, func(w http.ResponseWriter, r *http.Request, route Route, err error) {
		c := &call{a, w, r}
		if err == nil {
			err = c.dispatch(route)
		}
		if err != nil {
			c.fail(err)
		}
	})
}

// call is one request and what its handler needs.
type call struct {
	API
	w http.ResponseWriter
	r *http.Request
}

// dispatch checks whether the caller may do the operation, and does it. Every caller that the frame admits may know
// that the server lives.
func (c *call) dispatch(route Route) error {
	if route.Pattern != health && !httpapi.CallerOf(c.r.Context()).IsPlatform() {
		return &mechttp.Fault{Status: http.StatusForbidden, Detail: "this needs the role platform"}
	}
	if route.Method != http.MethodGet {
		// EdgeGallery's mepserver neither reads nor closes the reply to a change, so that its HTTP client cannot use
		// the connection again: it opens one for each call and leaves it, until all that this listener has are taken
		// and it hangs. An empty reply would let it go on with one; but people and scripts look for the word.
		c.w.Header().Set("Connection", "close")
	}
	return route.handle(c)
}

func (c *call) actor() store.Actor { return httpapi.Actor(c.r.Context(), "servermgmt") }

// maxBody bounds a batch, in octets: some ten thousand records.
const maxBody = 1 << 20

// read reads the body of a request.
func (c *call) read() ([]byte, error) { return mechttp.Read(c.w, c.r, maxBody) }

func (c *call) health() error {
	c.text("OK")
	return nil
}

// text answers with a word, as EdgeGallery's DNS server does. Clients look at the status.
func (c *call) text(s string) {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte(s)) // the client may have closed the connection; ignore the error
}

// done answers a change with the word Success, or returns its error.
func (c *call) done(err error) error {
	if err == nil {
		c.text("Success")
	}
	return err
}
