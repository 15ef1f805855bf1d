// Package identity serves the part of the OpenStack Identity API v3 (Keystone) that clients need to log in.
//
// The users, projects and roles are those of package access; there is no Keystone behind it. Start with Register in
// this file: it lists every path and its handler. login.go parses the body of a login, and wire.go has the documents.
package identity

import (
	"cmp"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/httpapi"
)

// API serves logins and projects.
type API struct {
	Access    *access.Access
	Log       *slog.Logger // default: none
	PublicURL string       // the URL of the server in documents; default: the host of each request
}

// Register adds the paths of the API to a mux. The mux must be inside an httpapi.Frame.
func (a API) Register(mux *http.ServeMux) {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	mux.HandleFunc("GET /v3", a.version)
	mux.HandleFunc("GET /v3/{$}", a.version)
	mux.HandleFunc("POST /v3/auth/tokens", a.login)
	mux.HandleFunc("GET /v3/auth/tokens", a.validate)
	mux.HandleFunc("DELETE /v3/auth/tokens", a.revoke)
	mux.HandleFunc("GET /v3/auth/catalog", a.catalogOnly)
	mux.HandleFunc("GET /v3/auth/projects", a.projects)
	mux.HandleFunc("GET /v3/projects", a.projects)
	mux.HandleFunc("GET /v3/projects/{id}", a.project)
	mux.HandleFunc("/v3/", func(w http.ResponseWriter, r *http.Request) {
		httpapi.Error(w, r, http.StatusNotFound, "this identity service knows logins and projects only")
	})
}

// version returns the version document, which clients read before they log in.
func (a API) version(w http.ResponseWriter, r *http.Request) {
	httpapi.JSON(w, http.StatusOK, map[string]any{"version": Version(httpapi.BaseURL(r, a.PublicURL))})
}

// login exchanges a credential for a session. Like Keystone it returns the session in the header X-Subject-Token.
func (a API) login(w http.ResponseWriter, r *http.Request) {
	l, err := decodeLogin(r.Body)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	p, err := a.check(r, l)
	if err == nil {
		httpapi.NoteCaller(r.Context(), httpapi.CallerFor(p))
		var text string
		p.System = l.system
		text, p, err = a.Access.Issue(p, l.project, l.method)
		w.Header().Set("X-Subject-Token", text)
	}
	if err != nil {
		w.Header().Del("X-Subject-Token")
		a.fail(w, r, err)
		return
	}
	httpapi.NoteCaller(r.Context(), httpapi.CallerFor(p))
	httpapi.JSON(w, http.StatusCreated, a.tokenDoc(r, p))
}

// check verifies the credential of a login and returns its owner.
func (a API) check(r *http.Request, l login) (access.Principal, error) {
	switch l.method {
	case methodPassword:
		return a.Access.Password(r.Context(), httpapi.ClientAddr(r), l.user, l.secret)
	case methodCredential:
		return a.Access.Credential(l.user, l.secret)
	}
	return a.Access.Authenticate(l.secret)
}

// subject returns the owner of the token in X-Subject-Token. Only the owner and administrators may ask; for others
// subject writes the error.
func (a API) subject(w http.ResponseWriter, r *http.Request) (access.Principal, bool) {
	p, err := a.Access.Authenticate(r.Header.Get("X-Subject-Token"))
	c := httpapi.CallerOf(r.Context())
	switch {
	case err != nil && c.IsAdmin():
		httpapi.Error(w, r, http.StatusNotFound, "Could not find token.")
	case err != nil || p.ID != c.ID && !c.IsAdmin():
		// The same answer for an invalid token and for one of another user: the caller must not learn which it is.
		httpapi.Error(w, r, http.StatusForbidden, "You are not authorized to see or revoke this token.")
	default:
		return p, true
	}
	return p, false
}

// validate returns the document of the token in X-Subject-Token, as Keystone does for services that check a token.
func (a API) validate(w http.ResponseWriter, r *http.Request) {
	p, ok := a.subject(w, r)
	if !ok {
		return
	}
	w.Header().Set("X-Subject-Token", r.Header.Get("X-Subject-Token"))
	httpapi.JSON(w, http.StatusOK, a.tokenDoc(r, p))
}

// revoke ends a session. It does not revoke lasting tokens, because programs call it when they exit.
func (a API) revoke(w http.ResponseWriter, r *http.Request) {
	p, ok := a.subject(w, r)
	if !ok {
		return
	}
	if p.Session == "" {
		httpapi.Error(w, r, http.StatusForbidden, "this is a lasting token: use nameplane token revoke "+p.ID)
		return
	}
	if err := a.Access.EndSession(r.Context(), httpapi.Actor(r.Context(), "identity"), p); err != nil {
		a.fail(w, r, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// catalogOnly returns the catalog by itself, for clients that logged in with ?nocatalog.
func (a API) catalogOnly(w http.ResponseWriter, r *http.Request) {
	self := httpapi.BaseURL(r, a.PublicURL) + "/v3/auth/catalog"
	httpapi.JSON(w, http.StatusOK, catalogDoc{a.catalog(r), listLinks{Self: self}})
}

// projectMemory is the bytes of memory that a project takes in a list, with the longest name.
const projectMemory = 2 << 10

// projects lists projects by both of its paths: /v3/auth/projects for users who want their own, and /v3/projects
// for administrators. Each caller sees the same projects in both.
func (a API) projects(w http.ResponseWriter, r *http.Request) {
	if httpapi.CallerOf(r.Context()).IsAdmin() { // others see one project
		_, _, n := a.Access.Counts()
		if err := httpapi.Reserve(r.Context(), int64(n)*projectMemory); err != nil {
			a.fail(w, r, err)
			return
		}
	}
	doc := projectsDoc{Projects: []projectDoc{}, Links: listLinks{Self: httpapi.BaseURL(r, a.PublicURL) + r.URL.Path}}
	for _, p := range a.visible(r) {
		if name := r.URL.Query().Get("name"); name == "" || name == p.Name {
			doc.Projects = append(doc.Projects, a.projectDoc(r, p))
		}
	}
	httpapi.JSON(w, http.StatusOK, doc)
}

// project returns one project. A project that the caller may not see is 404, like one that does not exist.
func (a API) project(w http.ResponseWriter, r *http.Request) {
	for _, p := range a.visible(r) {
		if p.ID == r.PathValue("id") {
			httpapi.JSON(w, http.StatusOK, map[string]projectDoc{"project": a.projectDoc(r, p)})
			return
		}
	}
	httpapi.Error(w, r, http.StatusNotFound, "Could not find project: "+r.PathValue("id")+".")
}

// visible returns the projects that the caller may see.
func (a API) visible(r *http.Request) []access.Project {
	c := httpapi.CallerOf(r.Context())
	if c.IsAdmin() {
		return a.Access.Projects()
	}
	p, err := a.Access.Project(c.Project)
	if err != nil {
		return nil
	}
	return []access.Project{p}
}

// fail maps an error to a status and writes it. A refused login is logged with its reason, which the client does not
// see.
func (a API) fail(w http.ResponseWriter, r *http.Request, err error) {
	var slow *access.ThrottledError
	switch {
	case errors.As(err, &slow):
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(slow.Wait.Seconds()))))
		httpapi.Error(w, r, http.StatusTooManyRequests, slow.Error())
	case errors.Is(err, access.ErrDenied):
		a.Log.Warn("login refused", "reason", err, "from", r.RemoteAddr, "request_id", httpapi.RequestID(r.Context()))
		httpapi.Error(w, r, http.StatusUnauthorized, "The request you have made requires authentication.")
	case !httpapi.Fail(w, r, err):
		a.Log.Error("login failed", "error", err, "request_id", httpapi.RequestID(r.Context()))
	}
}
