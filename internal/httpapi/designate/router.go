package designate

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is one operation of the API. A word of Pattern in braces stands for one path segment.
type Route struct {
	Method, Pattern, Description string

	need   permission
	handle func(*call) (reply, error)
}

// Routes lists every operation that Handler serves.
func (a *API) Routes() []Route {
	a.init()
	return slices.Clone(a.routes)
}

// route finds the route of the request and reads the parameters of its path. Final slashes do not count.
func (c *call) route() (Route, error) {
	path := strings.TrimRight(c.r.URL.EscapedPath(), "/")
	segments := strings.Split(path, "/")
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet // net/http leaves the body out
	}
	var allow []string
	for i, r := range c.api.routes {
		params, ok := match(c.api.words[i], segments)
		if !ok {
			continue
		}
		if r.Method == method {
			c.params = params
			return r, nil
		}
		allow = append(allow, r.Method)
	}
	if allow == nil {
		return Route{}, &fault{status: http.StatusNotFound, kind: "not_found", message: "There is nothing at " + c.r.URL.Path}
	}
	return Route{}, &fault{status: http.StatusMethodNotAllowed, kind: "method_not_allowed", allow: allow,
		message: c.r.Method + " is not possible here"}
}

// match compares the words of a pattern with the segments of a path, of which the first is empty.
func match(words, segments []string) (params map[string]string, ok bool) {
	if len(words) != len(segments) {
		return nil, false
	}
	for i, want := range words {
		if !strings.HasPrefix(want, "{") && want != segments[i] {
			return nil, false
		}
	}
	for i, want := range words {
		if !strings.HasPrefix(want, "{") {
			continue
		}
		value, err := url.PathUnescape(segments[i])
		if err != nil || value == "" {
			return nil, false
		}
		if params == nil {
			params = map[string]string{}
		}
		params[want[1:len(want)-1]] = value
	}
	return params, true
}
