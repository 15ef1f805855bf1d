// Package servermgmt serves the API by which an EdgeGallery mepserver manages the records of its DNS server, in both
// generations of that API.
//
// It adds operations that read records; EdgeGallery has none. Start with Routes in this file: it lists every operation
// and its handler. The handlers are in records.go.
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

	// EdgeGalleryStatus selects the statuses of EdgeGallery's DNS server: 400 for a record that exists, and for a missing
	// record 400 to PUT and 500 to DELETE. Otherwise they are 409 and 404.
	EdgeGalleryStatus bool
}

// Route is one operation of the API. A word of Pattern in braces matches one path segment.
type Route struct {
	Method, Pattern, Description string

	handle func(*call) error
}

const (
	records    = httpapi.ServerManagementPath + "rrecord"
	namePath   = records + "/{fqdn}"
	recordPath = namePath + "/{type}"
	zonesPath  = httpapi.ServerManagementPath + "zones"
	health     = "/health"
)

// Routes lists every operation of the API.
func Routes() []Route {
	return []Route{
		{http.MethodGet, records, "List the records of the DNS server", (*call).list},
		{http.MethodPut, records, "Put many records, or none", (*call).putBatch},
		{http.MethodPost, records, "Create records", (*call).create},
		{http.MethodGet, namePath, "List the records of a name", (*call).listName},
		{http.MethodGet, recordPath, "Show a record", (*call).show},
		{http.MethodPut, recordPath, "Replace a record", (*call).replace},
		{http.MethodDelete, recordPath, "Delete a record", (*call).remove},
		{http.MethodGet, zonesPath, "List the zones that have records", (*call).listZones},
		{http.MethodGet, health, "Report that the DNS server is alive", (*call).health},
	}
}

// Register adds the routes to a mux. The mux must be inside an httpapi.Frame.
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

// call is one request, with everything that its handler needs.
type call struct {
	API
	w http.ResponseWriter
	r *http.Request
}

// dispatch checks whether the caller may use the route, and runs its handler. Every caller that the Frame admits may
// ask whether the server is alive.
func (c *call) dispatch(route Route) error {
	if route.Pattern != health && !httpapi.CallerOf(c.r.Context()).IsPlatform() {
		return &mechttp.Fault{Status: http.StatusForbidden, Detail: "this operation needs the role platform"}
	}
	if route.Method != http.MethodGet {
		// EdgeGallery's mepserver neither reads nor closes the reply to a change, so its HTTP client cannot reuse the
		// connection. It opens one for each call and leaves it open, until it has used up all connections of this
		// listener and hangs. An empty reply would let it reuse the connection, but people and scripts expect the word.
		c.w.Header().Set("Connection", "close")
	}
	return route.handle(c)
}

func (c *call) actor() store.Actor { return httpapi.Actor(c.r.Context(), "servermgmt") }

// maxBody bounds a batch in bytes: about ten thousand records.
const maxBody = 1 << 20

// read reads the body of a request.
func (c *call) read() ([]byte, error) { return mechttp.Read(c.w, c.r, maxBody) }

func (c *call) health() error {
	c.text("OK")
	return nil
}

// text writes a word as plain text, as EdgeGallery's DNS server does. Clients check only the status.
func (c *call) text(s string) {
	c.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = c.w.Write([]byte(s)) // the client may have closed the connection; ignore the error
}

// done writes the reply to a successful change, or returns its error.
func (c *call) done(err error) error {
	if err == nil {
		c.text("Success")
	}
	return err
}
