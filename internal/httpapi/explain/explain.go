// Package explain is the door to looks at names: scans are begun, watched and read here, with their evidence and their
// history.
package explain

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

	looks "github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/check"
	"github.com/nameplane/nameplane/internal/explain/gather"
	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/scans"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/strictjson"
)

// base is where the door is.
const base = "/explain/v1"

// API is the door.
type API struct {
	Scans     *scans.Service
	Resolvers *resolvers.List
	PublicURL string
	Log       *slog.Logger    // default: none
	Done      <-chan struct{} // closed when the server stops: streams end
}

// Register adds the door's paths to a mux that is inside the frame.
func (a API) Register(mux *http.ServeMux) {
	if a.Log == nil {
		a.Log = slog.New(slog.DiscardHandler)
	}
	d := &door{API: a, streams: make(chan struct{}, maxStreams)}
	mux.HandleFunc("POST /explain/v1/scans", d.handle(d.start))
	mux.HandleFunc("GET /explain/v1/scans", d.handle(d.list))
	mux.HandleFunc("GET /explain/v1/scans/{id}", d.handle(d.get))
	mux.HandleFunc("GET /explain/v1/scans/{id}/report", d.handle(d.report))
	mux.HandleFunc("GET /explain/v1/scans/{id}/events", d.handle(d.events))
	mux.HandleFunc("GET /explain/v1/scans/{id}/raw", d.handle(d.raw))
	mux.HandleFunc("GET /explain/v1/scans/{id}/diff", d.handle(d.diff))
	mux.HandleFunc("GET /explain/v1/checks", d.handle(d.checks))
	mux.HandleFunc("GET /explain/v1/checks/{id}", d.handle(d.check))
	mux.HandleFunc("GET /explain/v1/resolvers", d.handle(d.resolvers))
}

type door struct {
	API
	streams chan struct{} // a place for each event stream
}

// handle answers with the error of a handler.
func (d *door) handle(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		var busy *scans.BusyError
		switch {
		case err == nil:
		case errors.As(err, &busy):
			w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(busy.After.Seconds())))))
			httpapi.Error(w, r, http.StatusTooManyRequests, busy.What)
		case errors.Is(err, scans.ErrRequest):
			httpapi.Error(w, r, http.StatusBadRequest, err.Error())
		case errors.Is(err, report.ErrNoPlan):
			httpapi.Error(w, r, http.StatusNotFound, err.Error())
		case errors.Is(err, scans.ErrPrivate):
			httpapi.Error(w, r, http.StatusForbidden, err.Error())
		case !httpapi.Fail(w, r, err):
			d.Log.Error("explain request failed", "error", err, "request_id", httpapi.RequestID(r.Context()))
		}
	}
}

// scan is a Scan as clients see it.
type scan struct {
	scans.Scan
	Report json.RawMessage   `json:"report,omitempty"`
	Links  map[string]string `json:"links"`
}

func (d *door) show(r *http.Request, x scans.Scan) scan {
	self := httpapi.BaseURL(r, d.PublicURL) + base + "/scans/" + x.ID
	links := map[string]string{"self": self, "events": self + "/events"}
	if x.State == scans.Done {
		links["report"], links["raw"] = self+"/report", self+"/raw"
	}
	if x.Previous != "" {
		links["diff"] = self + "/diff"
	}
	return scan{Scan: x, Links: links}
}

// start begins a scan. To make somebody else's servers answer questions is to change something, so readers may not.
func (d *door) start(w http.ResponseWriter, r *http.Request) error {
	c := httpapi.CallerOf(r.Context())
	if !c.CanWrite() {
		httpapi.Error(w, r, http.StatusForbidden, "this needs the role member")
		return nil
	}
	req, err := decode(r)
	if err != nil {
		return err
	}
	x, err := d.Scans.Start(r.Context(), httpapi.Actor(r.Context(), "explain"), httpapi.ClientAddr(r), req)
	if err != nil {
		return err
	}
	out := d.show(r, x)
	w.Header().Set("Location", out.Links["self"])
	httpapi.JSON(w, http.StatusAccepted, out)
	return nil
}

// keys are those that a request may have.
var keys = []string{"kind", "target", "types", "expect", "change"}

// decode reads a request strictly: a key that is not known is one that somebody relies on.
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
			return req, fmt.Errorf("%w: the body has a key that is not known: %s", scans.ErrRequest, k)
		}
	}
	if err := strictjson.Unmarshal(raw, &req); err != nil {
		return req, fmt.Errorf("%w: %w", scans.ErrRequest, err)
	}
	return req, nil
}

func (d *door) list(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	f := scans.Filter{Kind: looks.Kind(q.Get("kind"))}
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
	out := []scan{}
	for _, x := range d.Scans.List(httpapi.CallerOf(r.Context()).Project, f) {
		out = append(out, d.show(r, x))
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"scans": out})
	return nil
}

// find is the scan that a request is about.
func (d *door) find(r *http.Request) (scans.Scan, <-chan struct{}, error) {
	return d.Scans.Get(httpapi.CallerOf(r.Context()).Project, r.PathValue("id"))
}

func (d *door) get(w http.ResponseWriter, r *http.Request) error {
	x, _, err := d.find(r)
	if err != nil {
		return err
	}
	out := d.show(r, x)
	if x.State == scans.Done {
		made, err := d.Scans.Document(x.Project, x.ID, "json")
		if err != nil {
			return err
		}
		out.Report = made.Body
	}
	body, err := json.Marshal(out)
	if err != nil {
		return err
	}
	body = append(body, '\n')
	return send(w, r, "application/json", scans.Document{Body: body, Tag: scans.TagOf(body)})
}

// send answers with a document, or with 304 if the client has it. The tag is of what is sent, and not of the scan: a newer program may
// have more to say about the same facts.
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
	_, _ = w.Write(d.Body) // the client may be gone, and then nobody is left to tell
	return nil
}

// types are the media types of the forms of a report.
var types = map[string]string{"text": "text/plain; charset=utf-8", "json": "application/json", "markdown": "text/markdown; charset=utf-8", "junit": "application/xml",
	report.Calendar: "text/calendar; charset=utf-8"}

func (d *door) report(w http.ResponseWriter, r *http.Request) error {
	format := r.URL.Query().Get("format")
	if format == "" {
		format = "json"
	}
	if !slices.Contains(report.Formats, format) {
		return fmt.Errorf("%w: format is %q; there are %s", scans.ErrRequest, format, strings.Join(report.Formats, ", "))
	}
	x, err := d.ended(r)
	if err != nil {
		return err
	}
	made, err := d.Scans.Document(x.Project, x.ID, format)
	if err != nil {
		return err
	}
	return send(w, r, types[format], made)
}

// ended is the scan of a request if it has an outcome; others have nothing to show.
func (d *door) ended(r *http.Request) (scans.Scan, error) {
	x, _, err := d.find(r)
	if err == nil && x.State != scans.Done {
		err = fmt.Errorf("scan %s is %s: %w", x.ID, x.State, store.ErrNotFound)
	}
	return x, err
}

func (d *door) raw(w http.ResponseWriter, r *http.Request) error {
	x, err := d.ended(r)
	if err != nil {
		return err
	}
	facts, err := d.Scans.Facts(x.Project, x.ID)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := gather.Save(&b, facts); err != nil {
		return err
	}
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=\"%s.json\"", x.ID))
	return send(w, r, "application/json", scans.Document{Body: b.Bytes(), Tag: scans.TagOf(b.Bytes())})
}

// diff is what changed since the scan before, or since the one that the request names.
func (d *door) diff(w http.ResponseWriter, r *http.Request) error {
	x, err := d.ended(r)
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
	before, err := d.Scans.Facts(x.Project, with)
	if err != nil {
		return err
	}
	after, err := d.Scans.Facts(x.Project, x.ID)
	if err != nil {
		return err
	}
	if before.Name != after.Name {
		return fmt.Errorf("%w: scan %s is of another name", scans.ErrRequest, with)
	}
	changes := scans.Diff(before, after)
	if changes == nil {
		changes = []scans.Change{}
	}
	httpapi.JSON(w, http.StatusOK, map[string]any{"since": with, "sinceTime": before.At.UTC().Format(time.RFC3339), "changes": changes})
	return nil
}

func (d *door) checks(w http.ResponseWriter, _ *http.Request) error {
	httpapi.JSON(w, http.StatusOK, map[string]any{"checks": check.All()})
	return nil
}

func (d *door) check(w http.ResponseWriter, r *http.Request) error {
	c, ok := check.Find(strings.ToUpper(r.PathValue("id")))
	if !ok {
		return fmt.Errorf("check %s: %w", r.PathValue("id"), store.ErrNotFound)
	}
	httpapi.JSON(w, http.StatusOK, c)
	return nil
}

func (d *door) resolvers(w http.ResponseWriter, _ *http.Request) error {
	httpapi.JSON(w, http.StatusOK, d.Resolvers)
	return nil
}
