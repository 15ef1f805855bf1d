// Package admin serves the API by which an administrator manages tokens, users and projects, fetches a backup, and
// scrubs the store.
//
// Start with Register in this file: it lists every path and its handler. The handlers of tokens and users are in
// accounts.go. The commands of nameplane use this API.
package admin

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/strictjson"
	"github.com/nameplane/nameplane/internal/zone"
)

// API serves the administration of a server.
type API struct {
	Access *access.Access
	Backup func(io.Writer) error      // writes a consistent copy of the store
	Scrub  func() (rows int, _ error) // verifies the store
	Log    *slog.Logger               // default: none
}

// Register adds the paths of the API to a mux. The mux must be inside an httpapi.Frame.
func (a API) Register(mux *http.ServeMux) {
	a.Log = cmp.Or(a.Log, slog.New(slog.DiscardHandler))
	d := &server{API: a, backups: make(chan struct{}, 1)}
	mux.HandleFunc("GET /access/v1/tokens", d.admin(d.listTokens))
	mux.HandleFunc("POST /access/v1/tokens", d.admin(d.createToken))
	mux.HandleFunc("DELETE /access/v1/tokens/{id}", d.admin(d.revokeToken))
	mux.HandleFunc("GET /access/v1/users", d.admin(d.listUsers))
	mux.HandleFunc("POST /access/v1/users", d.admin(d.createUser))
	mux.HandleFunc("PATCH /access/v1/users/{id}", d.admin(d.setPassword))
	mux.HandleFunc("DELETE /access/v1/users/{id}", d.admin(d.deleteUser))
	mux.HandleFunc("GET /access/v1/projects", d.admin(d.listProjects))
	mux.HandleFunc("POST /access/v1/projects", d.admin(d.createProject))
	mux.HandleFunc("DELETE /access/v1/projects/{id}", d.admin(d.deleteProject))
	mux.HandleFunc("GET /admin/v1/backup", d.admin(d.backup))
	mux.HandleFunc("POST /admin/v1/scrub", d.admin(d.scrub))
}

type server struct {
	API
	// backups is a semaphore for one backup or scrub: while one runs, the store cannot reuse old pages.
	backups chan struct{}
}

// admin returns a handler that admits only administrators and writes the error of h.
func (d *server) admin(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !httpapi.CallerOf(r.Context()).IsAdmin() {
			httpapi.Error(w, r, http.StatusForbidden, "this needs the role admin")
			return
		}
		if err := h(w, r); err != nil && !httpapi.Fail(w, r, err) {
			d.Log.Error("admin request failed", "error", err, "request_id", httpapi.RequestID(r.Context()))
		}
	}
}

// accountMemory is the bytes of memory that a token, user or project takes in a list, with the longest names.
const accountMemory = 2 << 10

// reserve waits for the memory of a list of n accounts.
func reserve(r *http.Request, n int) error {
	return httpapi.Reserve(r.Context(), int64(n)*accountMemory)
}

func actor(r *http.Request) store.Actor { return httpapi.Actor(r.Context(), "admin") }

// decode reads a body and refuses unknown keys. Its errors contain names of keys, but never the text of the decoder:
// that could quote the body, and so a password.
func decode(r *http.Request, into any) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return &zone.InvalidError{Field: "body", Reason: "must be a JSON object"}
	}
	known, err := json.Marshal(into)
	if err != nil {
		return err
	}
	var want map[string]json.RawMessage
	if err := json.Unmarshal(known, &want); err != nil {
		return err
	}
	for k := range keys {
		if _, ok := want[k]; !ok {
			return &zone.InvalidError{Field: "body", Reason: "has an unknown key: " + k}
		}
	}
	err = strictjson.Unmarshal(raw, into)
	if invalid := (*zone.InvalidError)(nil); err != nil && !errors.As(err, &invalid) {
		return &zone.InvalidError{Field: strictjson.Whole, Reason: "has a value of the wrong type"}
	}
	return err
}

type project struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Created     time.Time `json:"created_at"`
}

func (d *server) listProjects(w http.ResponseWriter, r *http.Request) error {
	_, _, n := d.Access.Counts()
	if err := reserve(r, n); err != nil {
		return err
	}
	out := []project{}
	for _, p := range d.Access.Projects() {
		out = append(out, project(p))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"projects": out})
	return nil
}

func (d *server) createProject(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	if err := decode(r, &in); err != nil {
		return err
	}
	p, err := d.Access.CreateProject(r.Context(), actor(r), in.Name, in.Description)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusCreated, map[string]any{"project": project(p)})
	return nil
}

// deleteProject deletes a project. It returns 409 while the project owns zones, tokens or users.
func (d *server) deleteProject(w http.ResponseWriter, r *http.Request) error {
	if err := d.Access.DeleteProject(r.Context(), actor(r), r.PathValue("id")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// acquire reports whether the caller may read the whole store now. Call release afterwards.
func (d *server) acquire() bool {
	select {
	case d.backups <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *server) release() { <-d.backups }

// scrub verifies the store. Damage is a result of the scrub, not a failure of the request.
func (d *server) scrub(w http.ResponseWriter, r *http.Request) error {
	if !d.acquire() {
		return access.ErrBusy
	}
	defer d.release()
	var out struct {
		Rows   int    `json:"rows"`
		Damage string `json:"damage"`
	}
	var err error
	if out.Rows, err = d.Scrub(); errors.As(err, new(*store.DamagedError)) {
		out.Damage = err.Error()
	} else if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, out)
	return nil
}

// backupRate is the slowest speed at which a client may read a backup, in bytes per second. A backup holds a read
// transaction, and the store keeps the pages that changes replace until it ends: at most another size of the store. It
// is not staged in a file, because that would take the same space at once, and is impossible on a full disk.
const backupRate = 1 << 20

// backup streams a copy of the store. After an error it aborts the connection, so that no client mistakes a part of the
// copy for the whole.
func (d *server) backup(w http.ResponseWriter, r *http.Request) error {
	if !d.acquire() {
		return access.ErrBusy
	}
	defer d.release()
	httpapi.ReadAtLeast(r.Context(), backupRate)
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="nameplane.backup"`)
	if err := d.Backup(w); err != nil {
		d.Log.Error("backup ended early", "error", err, "request_id", httpapi.RequestID(r.Context()))
		panic(http.ErrAbortHandler)
	}
	return nil
}
