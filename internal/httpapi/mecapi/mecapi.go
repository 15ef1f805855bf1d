// Package mec serves the DNS rules of edge applications: to the applications themselves (Mp1, as ETSI MEC 011 has it) and to
// the platform that manages them (Mm5, in the form of our own document and in both forms that EdgeGallery shipped).
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

// API is both doors over a Service. Each is registered with the mux of the listener it belongs to.
type API struct {
	Service   *mec.Service
	Callbacks *Callbacks   // the ones that the Service delivers with; nil: none
	Log       *slog.Logger // default: none

	// EdgeGallery makes Mp1 behave as EdgeGallery does: PUT may have the state alone and refuses every other difference
	// with 400, the header X-AppinstanceID, which its gateway sets, must be the application of the path, and rules have
	// loadBalance, expiresAt and grantedDomain. Without it Mp1 is what MEC 011 says.
	EdgeGallery bool

	// Revoke ends the tokens of an application that is terminated, and tells how many.
	Revoke func(ctx context.Context, actor store.Actor, app string) (int, error)

	// Done is closed when the server is about to stop, so that event streams end by themselves; nil: they do not.
	Done <-chan struct{}
}

// Limits of bodies, in octets: what EdgeGallery has, and for our own form room for every rule an application may have.
const (
	mp1Body  = 4 << 10
	mm5Body  = 32 << 10
	ruleBody = 512 << 10
)

// Route is one operation. A word of Pattern in braces stands for one path segment.
type Route struct {
	Method, Pattern, Description string

	handle   func(*call) (reply, error)
	limit    int64 // of the body
	conflict int   // status for what is there already; default 409
}

// mp1Bases are where Mp1 is found: ETSI's path in its old and new version, EdgeGallery's, and that of our document.
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

// RegisterMp1 adds Mp1 to a mux that is inside the frame, at all its base paths.
func (a API) RegisterMp1(mux *http.ServeMux) {
	d := newDoor(a, "mp1", mp1Streams)
	for _, base := range mp1Bases {
		routes := Mp1Routes()
		for i := range routes {
			routes[i].Pattern = base + routes[i].Pattern[len(mp1Bases[0]):]
		}
		d.register(mux, routes, (*call).admitApp)
	}
}

// RegisterMm5 adds Mm5 to a mux that is inside the frame.
func (a API) RegisterMm5(mux *http.ServeMux) {
	newDoor(a, "mm5", mm5Streams).register(mux, Mm5Routes(), (*call).admitPlatform)
}

// door is one of the two.
type door struct {
	API
	name    string                 // in the journal
	streams httpapi.Shares[string] // event streams: each is a connection that stays
	pace    pace
}

func newDoor(a API, name string, streams int) *door {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	return &door{API: a, name: name, streams: httpapi.Shares[string]{Max: streams}}
}

// register adds routes to the mux, behind a check of the caller.
func (d *door) register(mux *http.ServeMux, routes []Route, admit func(*call) error) {
	pattern := func(r Route) (string, string) { return r.Method, r.Pattern }
	mechttp.Register(mux, routes, pattern, func(w http.ResponseWriter, r *http.Request, route Route, err error) {
		c := &call{door: d, w: w, r: r, route: route}
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
