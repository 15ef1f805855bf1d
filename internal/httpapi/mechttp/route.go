package mechttp

import (
	"maps"
	"net/http"
	"slices"
)

// Register adds routes to a mux. Each path gets one handler for all its methods, because the mux's own 405 is not a
// problem document. of returns the method and the pattern of a route. serve handles a request; err is set when the path
// has no route for the method.
func Register[R any](mux *http.ServeMux, routes []R, of func(R) (method, pattern string),
	serve func(w http.ResponseWriter, r *http.Request, route R, err error)) {
	paths := map[string]map[string]R{}
	for _, route := range routes {
		method, pattern := of(route)
		if paths[pattern] == nil {
			paths[pattern] = map[string]R{}
		}
		paths[pattern][method] = route
	}
	for pattern, methods := range paths {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet // net/http leaves the body out
			}
			route, found := methods[method]
			var err error
			if !found {
				err = &Fault{Status: http.StatusMethodNotAllowed, Detail: r.Method + " is not possible here",
					Allow: slices.Sorted(maps.Keys(methods))}
			}
			serve(w, r, route, err)
		})
	}
}
