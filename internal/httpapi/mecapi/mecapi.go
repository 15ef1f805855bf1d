// Package mecapi serves the DNS rules of edge applications over HTTP, to the applications (Mp1 of ETSI MEC 011) and to
// the platform that manages them (Mm5).
//
// Mm5 has three forms: nameplane's own (mm5.go, see docs/reference/mec.md) and the two that EdgeGallery shipped
// (edgegallery.go).
// Start with Mp1Routes and Mm5Routes in this file: they list every operation and its handler. dispatch in call.go
// admits the caller and runs the handler. Package internal/mec has the rules themselves.
package mecapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// API serves Mp1 and Mm5 over a Service. Each is registered with the mux of its own listener.
type API struct {
	Service   *mec.Service
	Callbacks *Callbacks   // the Callbacks that the Service delivers with; nil: no subscriptions
	Log       *slog.Logger // default: none

	// EdgeGallery makes Mp1 compatible with EdgeGallery; otherwise Mp1 follows MEC 011. With EdgeGallery a PUT may have
	// only the state, and every other difference is 400. The header X-AppinstanceID, which EdgeGallery's gateway sets,
	// must be the application of the path. Rules have loadBalance, expiresAt and grantedDomain.
	EdgeGallery bool

	// Revoke revokes the tokens of an application that is terminated, and returns their number.
	Revoke func(ctx context.Context, actor store.Actor, app string) (int, error)

	// Done is closed when the server is about to stop, so that event streams end. nil: they end with their connections.
	Done <-chan struct{}
}

// Limits of bodies in bytes. The first two are EdgeGallery's; ruleBody has room for every rule that an application may
// have.
const (
	mp1Body  = 4 << 10
	mm5Body  = 32 << 10
	ruleBody = 512 << 10
)

// Route is one operation of the API. A word of Pattern in braces matches one path segment.
type Route struct {
	Method, Pattern, Description string

	handle   func(*call) (reply, error)
	limit    int64 // the largest body in bytes
	conflict int   // the status when the object exists already; default 409
}

// mp1Bases are the base paths of Mp1: version 2 and version 1 of ETSI, EdgeGallery, and the short form without a
// prefix.
var mp1Bases = []string{"/mec_app_support/v2", "/mec_app_support/v1", "/mep/mec_app_support/v1", ""}

// Mp1Routes lists every operation of Mp1, at the first of its base paths.
func Mp1Routes() []Route {
	const rulesPath, subs = "/applications/{app}/dns_rules", "/applications/{app}/subscriptions"
	out := []Route{
		{http.MethodGet, rulesPath, "List the DNS rules of an application", (*call).listRules, 0, 0},
		{http.MethodGet, rulesPath + "/{rule}", "Show a DNS rule", (*call).showRule, 0, 0},
		{http.MethodPut, rulesPath + "/{rule}", "Change a DNS rule", (*call).putOwnRule, mp1Body, 0},
		{http.MethodGet, rulesPath + "/events", "Watch the DNS rules of an application", (*call).watchApp, 0, 0},
		{http.MethodPut, rulesPath + "/events", "", (*call).putOwnRule, mp1Body, 0},
		{http.MethodGet, subs, "List the subscriptions of an application", (*call).listSubscriptions, 0, 0},
		{http.MethodPost, subs, "Subscribe to changes of DNS rules", (*call).subscribe, mp1Body, 0},
		{http.MethodGet, subs + "/{subscription}", "Show a subscription", (*call).showSubscription, 0, 0},
		{http.MethodDelete, subs + "/{subscription}", "End a subscription", (*call).unsubscribe, 0, 0},
	}
	for i := range out {
		out[i].Pattern = mp1Bases[0] + out[i].Pattern
	}
	return out
}

// Mm5Routes lists every operation of Mm5.
func Mm5Routes() []Route {
	return slices.Concat(configRoutes, edgeGalleryRuleRoutes, edgeGalleryTaskRoutes)
}

// RegisterMp1 adds Mp1 to a mux at all its base paths. The mux must be inside an httpapi.Frame.
func (a API) RegisterMp1(mux *http.ServeMux) {
	d := newEndpoint(a, "mp1", mp1Streams)
	for _, base := range mp1Bases {
		routes := Mp1Routes()
		for i := range routes {
			routes[i].Pattern = base + routes[i].Pattern[len(mp1Bases[0]):]
		}
		d.register(mux, routes, (*call).admitApp)
	}
}

// RegisterMm5 adds Mm5 to a mux. The mux must be inside an httpapi.Frame.
func (a API) RegisterMm5(mux *http.ServeMux) {
	newEndpoint(a, "mm5", mm5Streams).register(mux, Mm5Routes(), (*call).admitPlatform)
}

// endpoint is Mp1 or Mm5.
type endpoint struct {
	API
	name    string                 // the name in the journal
	streams httpapi.Shares[string] // open event streams, each of which holds a connection
	limits  changeLimits
}

func newEndpoint(a API, name string, streams int) *endpoint {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	return &endpoint{API: a, name: name, streams: httpapi.Shares[string]{Max: streams}}
}

// register adds routes to the mux, behind a check of the caller.
func (d *endpoint) register(mux *http.ServeMux, routes []Route, admit func(*call) error) {
	pattern := func(r Route) (string, string) { return r.Method, r.Pattern }
	mechttp.Register(mux, routes, pattern, func(w http.ResponseWriter, r *http.Request, route Route, err error) {
		c := &call{endpoint: d, w: w, r: r, route: route}
		var rep reply
		if err == nil {
			rep, err = c.dispatch(admit)
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.write(rep)
	})
}
