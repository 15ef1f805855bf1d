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

// unrouted is the ResponseWriter that the mux gets. Handlers write to the call's own one, so only the mux's replies to
// requests without a route come here: WriteHeader answers them in the form of the API, and the mux's text is dropped.
type unrouted struct {
	http.ResponseWriter
	call *call
}

// WriteHeader answers 405 as the mux does, with its Allow header, and everything else with 404. The mux would redirect
// paths with empty segments.
func (u *unrouted) WriteHeader(status int) {
	r := u.call.r
	if status == http.StatusMethodNotAllowed {
		u.call.fail(&fault{status: status, kind: "method_not_allowed", message: r.Method + " is not possible here"})
		return
	}
	u.Header().Del("Location")
	u.call.fail(&fault{status: http.StatusNotFound, kind: "not_found", message: "There is nothing at " + r.URL.Path})
}

func (u *unrouted) Write(b []byte) (int, error) { return len(b), nil }

// withoutSlash returns the request without slashes at the end of its path: clients of Designate send them. An encoded
// slash is part of an id and stays.
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
