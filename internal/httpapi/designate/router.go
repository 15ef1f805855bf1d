package designate

import (
	"net/http"
	"net/url"
	"strings"
)

// Route is one operation of the API. Pattern is a path in the form of http.ServeMux.
type Route struct {
	Method, Pattern, Description string

	need   demand
	handle func(*call) (reply, error)
}

// newMux returns a mux with all routes.
func newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, route := range Routes() {
		pattern := route.Pattern
		if pattern == "/" {
			pattern = "/{$}"
		}
		mux.HandleFunc(route.Method+" "+pattern, func(w http.ResponseWriter, r *http.Request) {
			c := w.(*unrouted).call
			c.r, c.route = r, route
			rep, err := c.dispatch()
			if err != nil {
				c.fail(err)
				return
			}
			c.write(rep)
		})
	}
	return mux
}

// unrouted is the ResponseWriter that the mux gets. Handlers write to the writer of the call, so only the mux itself
// writes here: its replies to requests without a route. WriteHeader replaces them by errors in the form of the API.
type unrouted struct {
	http.ResponseWriter
	call *call
}

// WriteHeader keeps the mux's 405 with its Allow header, and turns everything else into 404. That includes the mux's
// redirects of paths with empty segments.
func (u *unrouted) WriteHeader(status int) {
	r := u.call.r
	if status == http.StatusMethodNotAllowed {
		u.call.fail(&fault{status: status, kind: "method_not_allowed", message: r.Method + " is not possible here"})
		return
	}
	u.Header().Del("Location")
	u.call.fail(&fault{status: http.StatusNotFound, kind: "not_found", message: "There is nothing at " + r.URL.Path})
}

// Write drops the text of the mux.
func (u *unrouted) Write(b []byte) (int, error) { return len(b), nil }

// withoutSlash returns the request without slashes at the end of its path: clients of Designate send them. An encoded
// slash is part of an id and is kept.
func withoutSlash(r *http.Request) *http.Request {
	escaped := strings.TrimRight(r.URL.EscapedPath(), "/")
	path, err := url.PathUnescape(escaped)
	if err != nil || path == r.URL.Path || path == "" {
		return r
	}
	to := new(url.URL)
	*to = *r.URL
	to.Path, to.RawPath = path, escaped
	trimmed := new(http.Request)
	*trimmed = *r
	trimmed.URL = to
	return trimmed
}
