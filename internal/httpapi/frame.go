package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/access"
)

// Frame is around every door.
type Frame struct {
	Access   *access.Access
	Log      *slog.Logger // default: none
	Limits   Limits
	Listener string // its name in metrics and in the log; default http

	// Identify tells who calls; default ByToken.
	Identify Identify

	// Areas are the paths where other roles than those of projects may enter.
	Areas []Area

	// NoLogin is for a listener without version documents and a login: nothing but /healthz and Public can be had there
	// without credentials.
	NoLogin bool

	Public []string // further paths that need no token

	// PublicURL is how clients reach us, when that is not what they asked for: behind a proxy. Its host is accepted by the
	// check against DNS rebinding.
	PublicURL string

	Metrics *Metrics // default: none are kept
}

// public are the paths that anybody may read. They tell that we are here and how to log in, and nothing of what we hold.
// /metrics is not among them: it tells how much we hold and who asks for it, and Prometheus can send a token.
var public = []string{"/", "/v3", "/v3/", healthPath, "/readyz", "/openapi.json"}

const healthPath = "/healthz"

// loginPath is the one path that anybody may post to.
const loginPath = "/v3/auth/tokens"

// Wrap puts the frame around the doors.
func (f Frame) Wrap(doors http.Handler) http.Handler {
	f.Log = cmp.Or(f.Log, slog.New(slog.DiscardHandler))
	if f.Identify == nil {
		f.Identify = ByToken(f.Access)
	}
	f.Listener = cmp.Or(f.Listener, "http")
	fr := &frame{Frame: f, doors: doors, public: map[string]bool{}, host: hostOf(f.PublicURL)}
	open := public
	if f.NoLogin {
		open = []string{healthPath}
	}
	for _, p := range slices.Concat(open, f.Public) {
		fr.public[p] = true
	}
	return fr
}

type frame struct {
	Frame
	doors  http.Handler
	public map[string]bool
	host   string // of PublicURL
}

// ServeHTTP leads one request through the frame.
func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := f.begin(w, r)
	defer f.end(x)
	if f.admit(x) {
		f.doors.ServeHTTP(x, x.req)
	}
}

// begin gives the request its id. An id of the client's is not taken: what is in our log must be ours.
func (f *frame) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, start: time.Now(), id: "req-" + uuid.NewString(), area: f.areaOf(r.URL.Path)}
	x.req = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	x.control = http.NewResponseController(w)
	h := w.Header()
	h.Set("X-Openstack-Request-Id", x.id)
	// For what a browser does with a reply: it is not guessed at, not kept, not framed and runs nothing. Doors with pages
	// replace these. There is no CORS header: no other site's script may read us.
	for name, value := range safeHeaders {
		h[name] = value
	}
	return x
}

// safeHeaders are the same for all replies, so they share them. Who adds to one gets a new list, because each is full.
var safeHeaders = http.Header{
	"X-Content-Type-Options":  {"nosniff"},
	"Cache-Control":           {"no-store"},
	"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":         {"no-referrer"},
}

// admit decides whether the request may go on to its door; if not it was answered.
func (f *frame) admit(x *exchange) bool {
	if !f.hostAllowed(x.req) {
		x.area.Error(x, x.req, http.StatusMisdirectedRequest, "this server listens on a loopback address and is not called "+
			"by the name in the Host header; call it localhost, or set http.public_url to the name it shall have")
		return false
	}
	err := f.authenticate(x)
	switch {
	case f.isPublic(x.req):
	case errors.Is(err, errForeignPage):
		x.area.Error(x, x.req, http.StatusForbidden, "a page of another site may not make changes here")
		return false
	case err != nil:
		f.challenge(x)
		return false
	case !x.area.mayEnter(x.caller):
		x.area.Error(x, x.req, http.StatusForbidden,
			"this needs one of the roles "+strings.Join(x.area.Roles, ", ")+", "+access.RoleAdmin)
		return false
	}
	return f.limitBody(x, err == nil)
}

// challenge asks for credentials.
func (f *frame) challenge(x *exchange) {
	if !f.NoLogin {
		x.Header().Add("WWW-Authenticate", `Keystone uri="`+BaseURL(x.req, f.PublicURL)+`/v3"`)
	}
	x.Header().Add("WWW-Authenticate", `Bearer realm="nameplane"`)
	x.area.Error(x, x.req, http.StatusUnauthorized, "The request you have made requires authentication.")
}

// authenticate finds out who calls. A token that is not good counts as none, so that a client with an expired session can
// still log in.
func (f *frame) authenticate(x *exchange) error {
	c, err := f.Identify(x.req)
	if err != nil {
		if errors.Is(err, errNobody) {
			return err
		}
		// Not louder and not throttled: a token has too many bits to be guessed, the check takes less than a microsecond,
		// and a client whose session has expired must get its 401 at any time. Passwords are throttled, in access.
		f.Log.Debug("not authenticated", "reason", err, "request_id", x.id, "from", x.req.RemoteAddr, "listener", f.Listener)
		if f.Metrics != nil {
			f.Metrics.denied.WithLabelValues(f.Listener).Inc()
		}
		return err
	}
	x.caller = c
	return nil
}

// tokenOf returns the token or session of a request, or "".
func tokenOf(r *http.Request) string {
	if t := r.Header.Get("X-Auth-Token"); t != "" {
		return t
	}
	scheme, t, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(t)
	}
	return ""
}

func (f *frame) isPublic(r *http.Request) bool {
	p := r.URL.Path
	if r.Method == http.MethodPost {
		return p == loginPath && !f.NoLogin
	}
	return f.public[p] && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// end writes down what happened.
func (f *frame) end(x *exchange) {
	cutOff := f.panicked(x, recover())
	x.finish()
	took := time.Since(x.start)
	if f.Metrics != nil {
		f.Metrics.observe(f.Listener, x, took)
	}
	f.log(x, took)
	if cutOff {
		panic(http.ErrAbortHandler)
	}
}

// log writes the audit line of a change, or says at debug level that something was read. Never the query, headers or
// bodies: they can hold secrets.
func (f *frame) log(x *exchange, took time.Duration) {
	level, message := slog.LevelDebug, "request"
	if changes(x.req.Method) {
		level, message = slog.LevelInfo, "audit"
	}
	if !f.Log.Enabled(x.req.Context(), level) {
		return
	}
	f.Log.LogAttrs(x.req.Context(), level, message, slog.String("method", x.req.Method), slog.String("path", x.req.URL.Path),
		slog.Int("status", x.status), slog.String("who", x.caller.Who), slog.String("id", x.caller.ID),
		slog.String("project", x.caller.Project), slog.String("from", x.req.RemoteAddr), slog.String("request_id", x.id),
		slog.Duration("took", took), slog.Int64("octets", x.octets), slog.String("listener", f.Listener))
}

func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// panicked deals with what a handler's panic left. It reports whether the reply must be cut off: part of it is out, and
// nobody shall take that for the whole.
func (f *frame) panicked(x *exchange, v any) (cutOff bool) {
	if v == nil || v == http.ErrAbortHandler {
		return v != nil
	}
	f.Log.Error("panic in a handler", "panic", fmt.Sprint(v), "request_id", x.id, "method", x.req.Method,
		"path", x.req.URL.Path, "stack", string(debug.Stack()))
	if x.status != 0 {
		return true
	}
	x.area.Error(x, x.req, http.StatusInternalServerError, "internal error; the log has more under this request id")
	return false
}

// ClientAddr is the address that a request came from; the zero Addr when it is not known.
func ClientAddr(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr) // zero when it is none
	return ap.Addr()
}
