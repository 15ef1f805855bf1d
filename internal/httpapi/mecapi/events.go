package mecapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/httpapi/mechttp"
	"github.com/nameplane/nameplane/internal/mec"
)

// Times of a stream. The heartbeat is shorter than the idle timeout of usual proxies. A stream ends after streamLife
// and the client opens a new one, so that a revoked token does not give access for ever.
const (
	heartbeat  = 15 * time.Second
	streamLife = 15 * time.Minute
)

// Bounds on the streams at a time. The listener of Mm5 has fewer connections.
const (
	mp1Streams = 256
	mm5Streams = 64
	perApp     = 8
)

// watchApp streams the changes of an application's rules to clients that accept event streams. Other clients get the
// rule whose id is "events", which has the same path.
func (c *call) watchApp() (reply, error) {
	if !wantsStream(c.r) {
		return c.showRule()
	}
	return c.stream(c.app)
}

func (c *call) watchAll() (reply, error) { return c.stream("") }

func wantsStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*") ||
		strings.Contains(accept, "text/*")
}

// stream sends events until the client disconnects, the server stops, or streamLife is over.
func (c *call) stream(app string) (reply, error) {
	after, err := c.lastEvent()
	if err != nil {
		return reply{}, err
	}
	most := perApp
	if app == "" { // the platform
		most = c.streams.Max
	}
	if !c.streams.Take(app, most) {
		return reply{}, &mechttp.Fault{Status: http.StatusTooManyRequests, Detail: "too many event streams are open"}
	}
	defer c.streams.Return(app)
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // asks proxies such as nginx not to buffer
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return reply{sent: true}, nil
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), streamLife)
	defer cancel()
	go func() {
		select {
		case <-c.Done: // a nil channel blocks for ever
			cancel()
		case <-ctx.Done():
		}
	}()
	// Send something at once, so that the client knows that the stream is open.
	s := &sender{c: c, control: http.NewResponseController(c.w)}
	s.send(fmt.Sprintf("retry: 1000\nid: %d\n\n", after))
	for w := c.Service.Watch(app, after); s.err == nil && ctx.Err() == nil; {
		s.next(ctx, w)
	}
	return reply{sent: true}, nil
}

// lastEvent returns the number of the event after which the client wants to continue. The default is the newest event.
func (c *call) lastEvent() (uint64, error) {
	given := cmp.Or(c.r.Header.Get("Last-Event-Id"), c.r.URL.Query().Get("after")) // some clients cannot set headers
	if given == "" {
		return c.Service.Newest()
	}
	n, err := strconv.ParseUint(given, 10, 64)
	if err != nil {
		return 0, &mec.FieldError{Field: "Last-Event-ID", Msg: "must be the id of an event"}
	}
	return n, nil
}

// sender writes a stream.
type sender struct {
	c       *call
	control *http.ResponseController
	err     error
}

func (s *sender) send(text string) {
	if _, s.err = s.c.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}

// next sends the next events, a gap, or a heartbeat.
func (s *sender) next(ctx context.Context, w *mec.Watcher) {
	wait, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	events, err := w.Next(wait)
	var gap *mec.GapError
	switch {
	case ctx.Err() != nil:
	case errors.As(err, &gap):
		s.send(fmt.Sprintf("event: gap\ndata: {\"after\":%d,\"oldest\":%d}\n\n", gap.After, gap.Oldest))
	case err != nil && wait.Err() != nil:
		s.send(":\n\n")
	case err != nil:
		s.c.Log.Error("event stream ended early", "error", err)
		s.err = err
	default:
		s.send(s.text(events))
	}
}

func (s *sender) text(events []mec.Event) string {
	var b strings.Builder
	for _, e := range events {
		data, err := json.Marshal(fromEvent(e, s.c.extensions()))
		if err != nil {
			panic(err) // cannot happen: the type has no value that JSON cannot express
		}
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, notificationType, data)
	}
	return b.String()
}
