// Package powerdns serves the zones of this server in the form of the HTTP API of PowerDNS 4.7, so that its clients
// work unchanged, and adds entity tags and the changes EXTEND and PRUNE of later versions.
//
// Start with Routes in routes.go: it lists every operation and its handler. call.go runs a request. patch.go applies
// changes of record sets. The rules about who may do what are those of package designate. Errors have the words of
// PowerDNS where it has them: clients compare them. docs/reference/powerdns-api.md lists the differences.
package powerdns

import (
	"cmp"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/zone"
)

// API serves the zones of a Publisher.
type API struct {
	Publisher *publish.Publisher
	Zones     *designate.API // its rules, settings and peers apply here too
	Spool     *os.Root       // the directory for large replies

	Notify     func(zone.Zone)          // sends NOTIFY to the secondaries again
	Statistics func() map[string]uint64 // counters of the server by the names of PowerDNS

	Log *slog.Logger // default: none

	once      sync.Once
	downloads httpapi.Shares[string] // large replies that are being sent, by project
}

// Bounds on the large replies at a time: each has a file on disk.
const (
	maxDownloads        = 32
	maxProjectDownloads = 4
)

// Register adds the routes to a mux. The context of requests must carry an authenticated httpapi.Caller.
func (a *API) Register(mux *http.ServeMux) {
	a.once.Do(func() {
		a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
		a.downloads.Max = maxDownloads
	})
	mechttp.Register(mux, Routes(), func(r Route) (method, pattern string) { return r.Method, r.Pattern }, a.serve)
	mux.HandleFunc(httpapi.PowerDNSPath+"/", func(w http.ResponseWriter, r *http.Request) {
		(&call{api: a, w: w, r: r}).fail(status(http.StatusNotFound))
	})
}

// serve handles a request. err is set when the path has no route for the method.
func (a *API) serve(w http.ResponseWriter, r *http.Request, route Route, err error) {
	c := &call{api: a, w: w, r: r, route: route}
	if err != nil {
		c.fail(status(http.StatusMethodNotAllowed))
		return
	}
	rep, err := c.dispatch()
	if err != nil {
		c.fail(err)
		return
	}
	c.write(rep)
}
