package mecapi

import (
	"net/http"
	"strings"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// call is one request, with everything that its handler needs.
type call struct {
	*endpoint
	w     http.ResponseWriter
	r     *http.Request
	route Route
	app   string // the application of the path
}

// reply is the result of a handler.
type reply struct {
	status   int
	body     any // encoded as JSON; nil: no body
	etag     string
	location string
	sent     bool // the handler has written the whole reply itself
}

func ok(body any) reply { return reply{status: http.StatusOK, body: body} }

// dispatch checks whether the caller may use the route, and runs its handler.
func (c *call) dispatch(admit func(*call) error) (reply, error) {
	if strings.HasPrefix(c.route.Pattern, "/mepcfg/") {
		// EdgeGallery's MEPM creates an HTTP client for each call and leaves its connection open. Without this header it
		// would use up all connections of the listener.
		c.w.Header().Set("Connection", "close")
	}
	if strings.Contains(c.route.Pattern, "{app}") {
		c.app = c.r.PathValue("app")
		if err := mec.CheckApp(c.app); err != nil {
			return reply{}, err
		}
	}
	if err := admit(c); err != nil {
		return reply{}, err
	}
	return c.route.handle(c)
}

// admitApp admits an application to its own rules, and an administrator to all.
func (c *call) admitApp() error {
	// There must be exactly one value. If a gateway adds its value to one that the application sent, the first value was
	// not checked by the gateway.
	if h := c.r.Header.Values("X-Appinstanceid"); c.EdgeGallery && (len(h) != 1 || h[0] != c.app) {
		return &mechttp.Fault{Status: http.StatusUnauthorized,
			Detail: "the header X-AppinstanceID is not the application of the path"}
	}
	if httpapi.CallerOf(c.r.Context()).MayActFor(c.app) {
		return nil
	}
	return &mechttp.Fault{Status: http.StatusForbidden,
		Detail: "this operation needs a token of the application " + c.app + " (role app)"}
}

// admitPlatform admits the platform and administrators.
func (c *call) admitPlatform() error {
	if httpapi.CallerOf(c.r.Context()).IsPlatform() {
		return nil
	}
	return &mechttp.Fault{Status: http.StatusForbidden, Detail: "this operation needs the role platform"}
}

// read reads the body of a request.
func (c *call) read() ([]byte, error) { return mechttp.Read(c.w, c.r, c.route.limit) }

// decode reads the body into a JSON type.
func (c *call) decode(into any) error {
	b, err := c.read()
	if err != nil {
		return err
	}
	return mechttp.Decode(b, into)
}

func (c *call) actor() store.Actor { return httpapi.Actor(c.r.Context(), c.name) }

// url returns the URL of a path on the listener of the request.
func (c *call) url(path string) string { return httpapi.BaseURL(c.r, "") + path }

func (c *call) write(rep reply) {
	if rep.sent {
		return
	}
	h := c.w.Header()
	if rep.etag != "" {
		h.Set("ETag", rep.etag)
	}
	if rep.location != "" {
		h.Set("Location", rep.location)
	}
	if rep.body == nil {
		c.w.WriteHeader(rep.status)
		return
	}
	httpapi.JSON(c.w, rep.status, rep.body)
}

// tag returns the entity tag of a rule.
func tag(r mec.Rule) string { return `"` + r.ETag() + `"` }

// ifMatch compares the request's If-Match with the current rule. Call it inside the commit: of two writers with the
// same tag, only one succeeds then.
func (c *call) ifMatch(r mec.Rule) error {
	return c.matchTag(tag(r), "the rule has changed since If-Match was read; read it again and repeat the change")
}

// matchTag returns 412 with detail, unless the request's If-Match has the tag or is absent.
func (c *call) matchTag(tag, detail string) error {
	want := c.r.Header.Values("If-Match")
	if len(want) == 0 || httpapi.HasTag(want, func(t string) bool { return t == tag }) {
		return nil
	}
	return &mechttp.Fault{Status: http.StatusPreconditionFailed, Detail: detail}
}

// ifNoneMatch returns the reply to a GET, or 304 when If-None-Match has the tag of this representation.
func (c *call) ifNoneMatch(rep reply) reply {
	if none := c.r.Header.Values("If-None-Match"); len(none) > 0 && httpapi.HasWeakTag(none, rep.etag) {
		return reply{status: http.StatusNotModified, etag: rep.etag}
	}
	return rep
}

// ruleReply returns a reply with a rule and its tag.
func (c *call) ruleReply(status int, r mec.Rule) reply {
	return reply{status: status, body: c.wire(r), etag: tag(r)}
}
