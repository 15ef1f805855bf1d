package explainapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
)

// Limits of event streams. The heartbeat is shorter than the idle timeout of common proxies.
const (
	heartbeat  = 15 * time.Second
	maxStreams = 256
)

// events streams the events of a scan until it has ended: "progress", "finding" as soon as a check fails, and "done"
// or "failed". Findings before the end are provisional; the report is final.
func (h *handler) events(w http.ResponseWriter, r *http.Request) error {
	if _, _, err := h.find(r); err != nil {
		return err
	}
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		return &scans.BusyError{What: "too many event streams are open", After: 5 * time.Second}
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // keeps nginx from buffering the stream
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, control: http.NewResponseController(w), sent: map[string]bool{}}
	for s.err == nil {
		x, changed, err := h.find(r)
		if err != nil {
			return nil // the scan was deleted, which ends the stream
		}
		s.show(h.show(r, x), h.Scans.Findings(r.Context(), x.Project, x.ID))
		if changed == nil || s.err != nil {
			return nil
		}
		if !h.wait(r, s, changed) {
			return nil
		}
	}
	return nil
}

// wait blocks until the scan has changed. It returns false when the stream must end.
func (h *handler) wait(r *http.Request, s *stream, changed <-chan struct{}) bool {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for s.err == nil {
		select {
		case <-changed:
			return true
		case <-tick.C:
			s.send(":\n\n")
		case <-h.Done:
			return false
		case <-r.Context().Done():
			return false
		}
	}
	return false
}

// stream writes events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	sent    map[string]bool // findings that were sent
	err     error
}

func (s *stream) send(text string) {
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}

// event writes one server-sent event. Its ID is the version of the scan.
func (s *stream) event(version int, kind string, v any) {
	if s.err != nil {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		s.err = err
		return
	}
	s.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", version, kind, data))
}

// show writes the findings that were not sent before, and the state of the scan.
func (s *stream) show(x scan, findings []explain.Finding) {
	for _, f := range findings {
		if key := f.ID + " " + f.Subject; f.Status == explain.Fail && !s.sent[key] {
			s.sent[key] = true
			s.event(x.Version, "finding", f)
		}
	}
	switch x.State {
	case scans.Done, scans.Failed:
		s.event(x.Version, string(x.State), x)
	default:
		s.event(x.Version, "progress", x)
	}
}
