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

// Times of a stream. A silent one says so more often than proxies give up; a long one ends and is taken up again by the
// client, so that a token that was revoked is not good for ever.
const (
	heartbeat  = 15 * time.Second
	streamLife = 15 * time.Minute
)

// How many streams there may be at the same time. The listener of Mm5 has fewer connections.
const (
	mp1Streams = 256
	mm5Streams = 64
	perApp     = 8
)

// watchApp streams the changes of an application's rules, to whoever takes event streams. Others get the rule that happens to
// be called like the path.
func (c *call) watchApp() (reply, error) {
	if !wantsStream(c.r) {
		return c.showRule()
	}
	return c.stream(c.app)
}

func (c *call) watchAll() (reply, error) { return c.stream("") }

func wantsStream(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	return accept == "" || strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*") || strings.Contains(accept, "text/*")
}

// stream sends events until the client leaves, the server stops, or the stream's life is over.
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
		return reply{}, &mechttp.Fault{Status: http.StatusTooManyRequests, Detail: "there are as many event streams as may be"}
	}
	defer c.streams.Return(app)
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies that would wait for more
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return reply{sent: true}, nil
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), streamLife)
	defer cancel()
	go func() {
		select {
		case <-c.Done: // never, when it is nil
			cancel()
		case <-ctx.Done():
		}
	}()
	// The first line goes out at once, so that the client knows that it is heard.
	s := &sender{c: c, control: http.NewResponseController(c.w)}
	s.send(fmt.Sprintf("retry: 1000\nid: %d\n\n", after))
	for w := c.Service.Watch(app, after); s.err == nil && ctx.Err() == nil; {
		s.next(ctx, w)
	}
	return reply{sent: true}, nil
}

// lastEvent is the number that the client wants to go on from; without one it is the newest.
func (c *call) lastEvent() (uint64, error) {
	given := cmp.Or(c.r.Header.Get("Last-Event-Id"), c.r.URL.Query().Get("after")) // after: some cannot set headers
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

// next sends what comes next: events, that some are lost, or a sign of life.
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
		s.c.Log.Error("event stream broke off", "error", err)
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
			panic(err) // wire types can be written
		}
		fmt.Fprintf(&b, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, notificationType, data)
	}
	return b.String()
}
