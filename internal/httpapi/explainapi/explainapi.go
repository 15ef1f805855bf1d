// Package explainapi serves the HTTP API for scans of names, /explain/v1: clients start, watch and read scans, with
// their evidence and history.
//
// Start with API.Register in this file: it lists all routes. events.go serves the event stream of a running scan.
package explainapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/strictjson"
)

// base is the path prefix of the API.
const base = "/explain/v1"

// API holds what the handlers need.
type API struct {
	Scans     *scans.Service
	Resolvers *resolvers.List
	PublicURL string
	Log       *slog.Logger    // default: none
	Done      <-chan struct{} // closed when the server stops: event streams end
}

// Register adds the routes to a mux inside an httpapi.Frame.
func (a API) Register(mux *http.ServeMux) {
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{API: a, streams: make(chan struct{}, maxStreams)}
	mux.HandleFunc("POST /explain/v1/scans", h.handle(h.start))
	mux.HandleFunc("GET /explain/v1/scans", h.handle(h.list))
	mux.HandleFunc("GET /explain/v1/scans/{id}", h.handle(h.get))
	mux.HandleFunc("GET /explain/v1/scans/{id}/report", h.handle(h.report))
	mux.HandleFunc("GET /explain/v1/scans/{id}/events", h.handle(h.events))
	mux.HandleFunc("GET /explain/v1/scans/{id}/raw", h.handle(h.raw))
	mux.HandleFunc("GET /explain/v1/scans/{id}/diff", h.handle(h.diff))
	mux.HandleFunc("GET /explain/v1/checks", h.handle(h.checks))
	mux.HandleFunc("GET /explain/v1/checks/{id}", h.handle(h.check))
	mux.HandleFunc("GET /explain/v1/resolvers", h.handle(h.resolvers))
}

// handler implements the routes.
type handler struct {
	API
	streams chan struct{} // one slot for each event stream
}

// handle converts the error of a handler function to a response.
func (h *handler) handle(serve func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := serve(w, r)
		var busy *scans.BusyError
		switch {
		case err == nil:
		// Retry-After has whole seconds (RFC 9110 §10.2.3). Rounded down, a client would come too early.
		case errors.As(err, &busy):
			w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(busy.After.Seconds())))))
			httpapi.Error(w, r, http.StatusTooManyRequests, busy.What)
		case errors.Is(err, scans.ErrRequest):
			httpapi.Error(w, r, http.StatusBadRequest, err.Error())
		// The report exists, but not in this format: for a calendar without events, 404 is clearer than an empty file.
		case errors.Is(err, report.ErrNoPlan):
			httpapi.Error(w, r, http.StatusNotFound, err.Error())
		case errors.Is(err, scans.ErrMemory):
			// Ten seconds: a large report is built and sent within a few.
			w.Header().Set("Retry-After", "10")
			httpapi.Error(w, r, http.StatusServiceUnavailable, err.Error())
		case errors.Is(err, scans.ErrPrivate):
			httpapi.Error(w, r, http.StatusForbidden, err.Error())
		case !httpapi.Fail(w, r, err):
			h.Log.Error("explain request failed", "error", err, "request_id", httpapi.RequestID(r.Context()))
		}
	}
}

// scan is the JSON form of a Scan.
type scan struct {
	scans.Scan
	Report json.RawMessage   `json:"report,omitempty"`
	Links  map[string]string `json:"links"`
}

// show adds links to a scan. The report and the facts exist only when the scan is done.
func (h *handler) show(r *http.Request, x scans.Scan) scan {
	self := httpapi.BaseURL(r, h.PublicURL) + base + "/scans/" + x.ID
	links := map[string]string{"self": self, "events": self + "/events"}
	if x.State == scans.Done {
		links["report"], links["raw"] = self+"/report", self+"/raw"
	}
	// Links exist only for what can be read, so a client needs no knowledge of states.
	if x.Previous != "" {
		links["diff"] = self + "/diff"
	}
	return scan{Scan: x, Links: links}
}

// start starts a scan. It makes the server send queries to servers of others, so readers may not do it.
func (h *handler) start(w http.ResponseWriter, r *http.Request) error {
	c := httpapi.CallerOf(r.Context())
	if !c.CanWrite() {
		httpapi.Error(w, r, http.StatusForbidden, "this needs the role member")
		return nil
	}
	req, err := decode(r)
	if err != nil {
		return err
	}
	x, err := h.Scans.Start(r.Context(), httpapi.Actor(r.Context(), "explain"), httpapi.ClientAddr(r), req)
	if err != nil {
		return err
	}
	out := h.show(r, x)
	w.Header().Set("Location", out.Links["self"])
	httpapi.JSON(w, http.StatusAccepted, out)
	return nil
}

// keys are the keys that a request may have.
var keys = []string{"kind", "target", "types", "expect", "change", "dkim", "points_to", "proof", "proof_http",
	"proof_ns", "objects"}

// decode reads a request strictly: a client that sends an unknown key relies on it.
func decode(r *http.Request) (req scans.Request, err error) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return req, err
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return req, fmt.Errorf("%w: the body must be a JSON object", scans.ErrRequest)
	}
	for k := range given {
		if !slices.Contains(keys, k) {
			return req, fmt.Errorf("%w: the body has an unknown key: %s", scans.ErrRequest, k)
		}
	}
	if err := strictjson.Unmarshal(raw, &req); err != nil {
		return req, fmt.Errorf("%w: %w", scans.ErrRequest, err)
	}
	return req, nil
}

// These are the bytes of memory that a scan in a list, and each of its changes, take as JSON.
const (
	scanMemory   = 4 << 10
	changeMemory = 1 << 10
)

// list returns the scans of the caller's project, filtered by the query parameters kind, target and limit.
func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := scans.Filter{Kind: explain.Kind(q.Get("kind"))}
	if t := q.Get("target"); t != "" {
		name, _, err := gather.ParseInput(t)
		if err != nil {
			return fmt.Errorf("%w: target: %w", scans.ErrRequest, err)
		}
		f.Name = name
	}
	if l := q.Get("limit"); l != "" {
		n, err := strconv.Atoi(l)
		if err != nil || n < 1 || n > 1000 {
			return fmt.Errorf("%w: limit must be a number from 1 to 1000", scans.ErrRequest)
		}
		f.Limit = n
	}
	list, memory := h.Scans.List(httpapi.CallerOf(r.Context()).Project, f), int64(0)
	for _, x := range list {
		memory += scanMemory + int64(len(x.Changes))*changeMemory
	}
	if err := httpapi.Reserve(r.Context(), memory); err != nil {
		return err
	}
	out := []scan{}
	for _, x := range list {
		out = append(out, h.show(r, x))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"scans": out})
	return nil
}

// find returns the scan in the path of a request.
func (h *handler) find(r *http.Request) (scans.Scan, <-chan struct{}, error) {
	return h.Scans.Get(httpapi.CallerOf(r.Context()).Project, r.PathValue("id"))
}

// get returns a scan. If it is done, its JSON report is included, which saves clients a second request.
func (h *handler) get(w http.ResponseWriter, r *http.Request) error {
	x, _, err := h.find(r)
	if err != nil {
		return err
	}
	out := h.show(r, x)
	if x.State == scans.Done {
		made, release, err := h.Scans.Document(r.Context(), x.Project, x.ID, "json")
		if err != nil {
			return err
		}
		defer release()
		out.Report = made.Body
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	return send(w, r, "application/json", scans.Document{Body: body, Tag: scans.TagOf(body)})
}

// send sends a document, or 304 if the client has it. The tag is a digest of the body and not of the scan: a newer
// program may report more about the same facts.
func send(w http.ResponseWriter, r *http.Request, mediaType string, d scans.Document) error {
	tag := `"` + d.Tag + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	for given := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if given = strings.TrimPrefix(strings.TrimSpace(given), "W/"); given == tag || given == "*" {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(d.Body) // a client that has disconnected gets no error
	return nil
}

// types are the media types of the report formats.
var types = map[string]string{"text": "text/plain; charset=utf-8", "json": "application/json",
	"markdown": "text/markdown; charset=utf-8", "junit": "application/xml",
	report.Calendar: "text/calendar; charset=utf-8"}

// report returns the report of a scan, in the format of the query parameter; default json.
func (h *handler) report(w http.ResponseWriter, r *http.Request) error {
	format := r.URL.Query().Get("format")
	if format == "" {
		format = "json"
	}
	if !slices.Contains(report.Formats, format) {
		return fmt.Errorf("%w: format is %q; there are %s", scans.ErrRequest, format, strings.Join(report.Formats, ", "))
	}
	x, err := h.ended(r)
	if err != nil {
		return err
	}
	made, release, err := h.Scans.Document(r.Context(), x.Project, x.ID, format)
	if err != nil {
		return err
	}
	defer release()
	return send(w, r, types[format], made)
}

// ended returns the scan of a request if it is done. Other scans have no results.
func (h *handler) ended(r *http.Request) (scans.Scan, error) {
	x, _, err := h.find(r)
	if err == nil && x.State != scans.Done {
		err = fmt.Errorf("scan %s is %s: %w", x.ID, x.State, store.ErrNotFound)
	}
	return x, err
}

// raw returns the facts of a scan as a file that gather.Load can read.
func (h *handler) raw(w http.ResponseWriter, r *http.Request) error {
	x, err := h.ended(r)
	if err != nil {
		return err
	}
	facts, release, err := h.Scans.Facts(r.Context(), x.Project, x.ID)
	if err != nil {
		return err
	}
	defer release()
	var b bytes.Buffer
	if err := gather.Save(&b, facts[0]); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=\"%s.json\"", x.ID))
	return send(w, r, "application/json", scans.Document{Body: b.Bytes(), Tag: scans.TagOf(b.Bytes())})
}

// diff returns the changes since the previous scan, or since the scan that the request names.
func (h *handler) diff(w http.ResponseWriter, r *http.Request) error {
	x, err := h.ended(r)
	if err != nil {
		return err
	}
	with := r.URL.Query().Get("with")
	if with == "" {
		with = x.Previous
	}
	if with == "" {
		httpapi.JSON(w, http.StatusOK, map[string]any{"since": nil, "changes": []scans.Change{}})
		return nil
	}
	facts, release, err := h.Scans.Facts(r.Context(), x.Project, with, x.ID)
	if err != nil {
		return err
	}
	defer release()
	before, after := facts[0], facts[1]
	// Two names have nothing in common that could change. Without this check, every record would be reported as new.
	if before.Name != after.Name {
		return fmt.Errorf("%w: scan %s is of another name", scans.ErrRequest, with)
	}
	changes := scans.Diff(before, after)
	// An array and not null: clients iterate over it.
	if changes == nil {
		changes = []scans.Change{}
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"since": with, "sinceTime": before.At.UTC().Format(time.RFC3339),
		"changes": changes})
	return nil
}

func (h *handler) checks(w http.ResponseWriter, _ *http.Request) error {
	httpapi.JSON(w, http.StatusOK, map[string]any{"checks": check.All()})
	return nil
}

// check returns one check. IDs are case-insensitive, since people type them.
func (h *handler) check(w http.ResponseWriter, r *http.Request) error {
	c, ok := check.Find(strings.ToUpper(r.PathValue("id")))
	if !ok {
		return fmt.Errorf("check %s: %w", r.PathValue("id"), store.ErrNotFound)
	}
	httpapi.JSON(w, http.StatusOK, c)
	return nil
}

func (h *handler) resolvers(w http.ResponseWriter, _ *http.Request) error {
	httpapi.JSON(w, http.StatusOK, h.Resolvers)
	return nil
}
