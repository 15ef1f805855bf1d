package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/access"
)

// Frame is the middleware around every API. It authenticates the caller, checks the Area, limits the body, and writes
// metrics and the audit log.
type Frame struct {
	Access   *access.Access
	Log      *slog.Logger // default: none
	Limits   Limits
	Listener string // the name of the listener in metrics and in the log; default http

	// Identify finds the caller; default ByToken.
	Identify Identify

	// Areas are the paths that other roles than those of projects may use.
	Areas []Area

	// NoLogin is for a listener without version documents and without logins: only /healthz and Public are open to
	// requests without credentials.
	NoLogin bool

	Public []string // more paths that need no token

	// PublicURL is the URL of the server for clients behind a proxy. Default: see BaseURL. The check
	// against DNS rebinding accepts its host.
	PublicURL string

	Metrics *Metrics // default: none
}

// public lists the paths that everybody may read. They show that the server exists and how to log in, but no data.
// /metrics is not among them: it describes the data and the clients, and Prometheus can send a token.
var public = []string{"/", DNSPath, DNSPath + "/", "/v3", "/v3/", healthPath, "/readyz", "/openapi.json"}

const healthPath = "/healthz"

// loginPath is the only path that accepts POST without a token.
const loginPath = "/v3/auth/tokens"

// Wrap returns a handler that runs the Frame around the APIs.
func (f Frame) Wrap(apis http.Handler) http.Handler {
	f.Log = cmp.Or(f.Log, slog.New(slog.DiscardHandler))
	if f.Identify == nil {
		f.Identify = ByToken(f.Access)
	}
	f.Listener = cmp.Or(f.Listener, "http")
	fr := &frame{Frame: f, apis: apis, turns: cmp.Or(f.Limits.Turns, NewTurns()), public: map[string]bool{},
		host: hostOf(f.PublicURL), failures: access.NewFailures()}
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
	apis     http.Handler
	turns    *Turns
	public   map[string]bool
	host     string // the host of PublicURL
	failures *access.Failures
}

// ServeHTTP passes a request to the APIs if the Frame admits it.
func (f *frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := f.begin(w, r)
	defer f.end(x)
	if f.admit(x) && f.inTurn(x) {
		f.apis.ServeHTTP(x, x.req)
	}
}

// begin gives the request an id. It ignores an id from the client: the client could forge entries of the log with it.
func (f *frame) begin(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, start: time.Now(), id: "req-" + uuid.NewString(), area: f.areaOf(r.URL.Path),
		memory: memory{budget: f.Limits.Budget}, turns: f.turns}
	x.req = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	x.control = http.NewResponseController(w)
	h := w.Header()
	h.Set("X-Openstack-Request-Id", x.id)
	// These headers forbid a browser to guess the media type of a reply, to cache it, to show it in a frame and to run
	// scripts in it. APIs with pages replace them. There is no CORS header: scripts of other sites may not read replies.
	for name, value := range safeHeaders {
		h[name] = value
	}
	return x
}

// safeHeaders are shared by all replies, because they never change. Adding a value to one allocates a new slice,
// because each slice is at its capacity.
var safeHeaders = http.Header{
	"X-Content-Type-Options":  {"nosniff"},
	"Cache-Control":           {"no-store"},
	"Content-Security-Policy": {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":         {"no-referrer"},
}

// admit reports whether the request may continue to its API. If not, admit has written the error.
func (f *frame) admit(x *exchange) bool {
	if !f.hostAllowed(x.req) {
		x.area.Error(x, x.req, http.StatusMisdirectedRequest, "this server listens on a loopback address and does not have "+
			"the name in the Host header; use localhost, or set http.public_url to the name that clients use")
		return false
	}
	err := f.authenticate(x)
	slow, throttled := errors.AsType[*throttledError](err)
	switch {
	case f.isPublic(x.req):
	case errors.Is(err, errCrossSite):
		x.area.Error(x, x.req, http.StatusForbidden, "a page of another site may not make changes here")
		return false
	case throttled:
		x.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(slow.wait.Seconds()))))
		x.area.Error(x, x.req, http.StatusTooManyRequests, slow.Error())
		return false
	case err != nil:
		f.challenge(x)
		return false
	case !x.area.admits(x.caller):
		x.area.Error(x, x.req, http.StatusForbidden,
			"this needs one of the roles "+strings.Join(x.area.Roles, ", ")+", "+access.RoleAdmin)
		return false
	}
	return f.limitBody(x, err == nil)
}

// challenge answers 401 and names the accepted kinds of credentials.
func (f *frame) challenge(x *exchange) {
	if !f.NoLogin {
		x.Header().Add("WWW-Authenticate", `Keystone uri="`+BaseURL(x.req, f.PublicURL)+`/v3"`)
	}
	x.Header().Add("WWW-Authenticate", `Bearer realm="nameplane"`)
	x.area.Error(x, x.req, http.StatusUnauthorized, "The request you have made requires authentication.")
}

// authenticate finds the caller. On public paths an invalid token counts as none, so that a client with an expired
// session can still log in.
func (f *frame) authenticate(x *exchange) error {
	c, err := f.Identify(x.req)
	if err == nil {
		x.caller = c
		return nil
	}
	if errors.Is(err, errNobody) {
		return err
	}
	// The level is debug, because clients can send any number of invalid tokens.
	f.Log.Debug("not authenticated", "reason", err, "request_id", x.id, "from", x.req.RemoteAddr, "listener", f.Listener)
	if f.Metrics != nil {
		f.Metrics.denied.WithLabelValues(f.Listener).Inc()
	}
	return f.throttle(x, err)
}

// throttledError reports that an address sent too many invalid credentials, and how long it must wait.
type throttledError struct{ wait time.Duration }

func (e *throttledError) Error() string {
	return fmt.Sprintf("too many requests with invalid credentials came from this address: try again in %s",
		e.wait.Round(time.Second))
}

// throttle counts invalid credentials by the address of the client. It returns err, or a throttledError when the
// address has sent too many. It does not count an expired session: OpenStack clients log in again only after a 401, and
// many of them can share an address.
func (f *frame) throttle(x *exchange, err error) error {
	if !errors.Is(err, access.ErrDenied) || errors.Is(err, access.ErrEnded) {
		return err
	}
	wait := f.failures.Count(ClientAddr(x.req))
	if wait == 0 {
		return err
	}
	if f.Metrics != nil {
		f.Metrics.throttled.WithLabelValues(f.Listener).Inc()
	}
	return &throttledError{wait}
}

// tokenOf returns the token or session of a request, or "".
func tokenOf(r *http.Request) string {
	if t := r.Header.Get("X-Auth-Token"); t != "" {
		return t
	}
	if t := r.Header.Get("X-Api-Key"); t != "" && strings.HasPrefix(r.URL.Path+"/", PowerDNSPath+"/") {
		return t // clients of PowerDNS have no other header
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

// end records metrics and the audit line, and recovers from a panic of the handler.
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

// log writes the audit line of a change, or a debug line for a read. It never logs the query, headers or bodies: they
// can contain secrets.
func (f *frame) log(x *exchange, took time.Duration) {
	level, message := slog.LevelDebug, "request"
	if changes(x.req.Method) {
		level, message = slog.LevelInfo, "audit"
	}
	if !f.Log.Enabled(x.req.Context(), level) {
		return
	}
	f.Log.LogAttrs(x.req.Context(), level, message, slog.String("method", x.req.Method),
		slog.String("path", x.req.URL.Path),
		slog.Int("status", x.status), slog.String("who", x.caller.Who), slog.String("id", x.caller.ID),
		slog.String("project", x.caller.Project), slog.String("from", x.req.RemoteAddr), slog.String("request_id", x.id),
		slog.Duration("took", took), slog.Int64("bytes", x.bytes), slog.String("listener", f.Listener))
}

func changes(method string) bool {
	return method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions
}

// panicked handles the panic value of a handler. It reports whether the connection must be aborted: a part of the reply
// was sent, and the client must not mistake it for the whole.
func (f *frame) panicked(x *exchange, v any) (cutOff bool) {
	if err, _ := v.(error); v == nil || errors.Is(err, http.ErrAbortHandler) {
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

// ClientAddr returns the address of the client, or the zero Addr if it is not known.
func ClientAddr(r *http.Request) netip.Addr {
	ap, _ := netip.ParseAddrPort(r.RemoteAddr) // zero if it is not an address
	return ap.Addr()
}
