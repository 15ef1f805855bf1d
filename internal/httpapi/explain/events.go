package explain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	looks "github.com/nameplane/nameplane/internal/explain"
	"github.com/nameplane/nameplane/internal/explain/scans"
)

// Times and bounds of streams. A silent one says so more often than proxies give up.
const (
	heartbeat  = 15 * time.Second
	maxStreams = 256
)

// events streams what happens to a scan until it has ended: "progress", "finding" as soon as something is found to be wrong, and
// "done" or "failed". What was found on the way is provisional: the report has the last word.
func (d *door) events(w http.ResponseWriter, r *http.Request) error {
	if _, _, err := d.find(r); err != nil {
		return err
	}
	select {
	case d.streams <- struct{}{}:
		defer func() { <-d.streams }()
	default:
		return &scans.BusyError{What: "there are as many event streams as may be", After: 5 * time.Second}
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies that would wait for more
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, control: http.NewResponseController(w), sent: map[string]bool{}}
	for s.err == nil {
		x, changed, err := d.find(r)
		if err != nil {
			return nil // it was dropped; the stream is over
		}
		s.show(d.show(r, x), d.Scans.Findings(x.Project, x.ID))
		if changed == nil || s.err != nil {
			return nil
		}
		if !d.wait(r, s, changed) {
			return nil
		}
	}
	return nil
}

// wait returns when the scan has changed, with false when the stream is over.
func (d *door) wait(r *http.Request, s *stream, changed <-chan struct{}) bool {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for s.err == nil {
		select {
		case <-changed:
			return true
		case <-tick.C:
			s.send(":\n\n")
		case <-d.Done:
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
	sent    map[string]bool // findings
	err     error
}

func (s *stream) send(text string) {
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}

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

func (s *stream) show(x scan, findings []looks.Finding) {
	for _, f := range findings {
		if key := f.ID + " " + f.Subject; f.Status == looks.Fail && !s.sent[key] {
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
