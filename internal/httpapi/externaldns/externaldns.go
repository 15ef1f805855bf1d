// Package externaldns serves the webhook API of external-dns, which writes the names of Kubernetes services and
// ingresses into the zones of a project.
//
// Start with Routes in this file. endpoint.go converts endpoints to record sets and back, list.go reads them from a
// body, adjust.go removes endpoints that can never work, and changes.go applies changes.
package externaldns

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/strictjson"
	"github.com/nameplane/nameplane/internal/zone"
)

// mediaType is the type of all bodies. external-dns compares the header with this text, so it has no space.
const mediaType = "application/external.dns.webhook+json;version=1"

// MaxBody is the limit of a body in bytes: changes of more than 60,000 record sets with their ownership records.
const MaxBody = 32 << 20

// API serves the zones of a designate.API.
type API struct {
	Zones *designate.API
	Log   *slog.Logger // default: none

	dropped *prometheus.CounterVec
}

// New returns an API. log may be nil.
func New(zones *designate.API, log *slog.Logger) *API {
	return &API{Zones: zones, Log: cmp.Or(log, slog.New(slog.DiscardHandler)),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "nameplane_externaldns_dropped_endpoints_total",
			Help: "Endpoints of external-dns that were left out because they can never be served, by reason."},
			[]string{"reason"})}
}

// Collectors returns the metrics of the API.
func (a *API) Collectors() []prometheus.Collector { return []prometheus.Collector{a.dropped} }

// Route is one operation of the API.
type Route struct {
	Method, Pattern, Description string

	handle func(*call) error
}

// Routes lists every operation of the API.
func Routes() []Route {
	return []Route{
		{http.MethodGet, "/{$}", "List the zones of the caller for external-dns", (*call).negotiate},
		{http.MethodGet, "/records", "List the record sets for external-dns", (*call).records},
		{http.MethodPost, "/records", "Apply the changes of external-dns", (*call).apply},
		{http.MethodPost, "/adjustendpoints", "Remove endpoints that can never be served", (*call).adjust},
	}
}

// Register adds the routes to a mux inside an httpapi.Frame.
func (a *API) Register(mux *http.ServeMux) {
	paths := map[string]map[string]Route{}
	for _, r := range Routes() {
		if paths[r.Pattern] == nil {
			paths[r.Pattern] = map[string]Route{}
		}
		paths[r.Pattern][r.Method] = r
	}
	for pattern, methods := range paths {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet // net/http leaves the body out
			}
			route, ok := methods[method]
			if !ok {
				w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
				Error(w, r, http.StatusMethodNotAllowed, r.Method+" is not possible here")
				return
			}
			c := &call{api: a, zones: a.Zones.Session(w, r, "externaldns"), w: w, r: r}
			if err := route.handle(c); err != nil {
				c.fail(err)
			}
		})
	}
}

// NotFound answers requests for other paths. The status is not 404: see Error.
func NotFound(w http.ResponseWriter, r *http.Request) {
	Error(w, r, http.StatusNotImplemented, "this listener serves /, /records and /adjustendpoints")
}

// Error writes an error as a problem document. A 4xx ends external-dns, and a 5xx makes it try again in its next loop.
// So only credentials, methods and sizes get a 4xx, which no second try can cure; other client errors become 500.
func Error(w http.ResponseWriter, r *http.Request, status int, detail string) {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge:
	default:
		status = max(status, http.StatusInternalServerError)
	}
	httpapi.Problem(w, r, status, detail)
}

// call is one request, with everything that its handler needs.
type call struct {
	api   *API
	zones *designate.Session
	w     http.ResponseWriter
	r     *http.Request
}

func (c *call) fail(err error) {
	var large *http.MaxBytesError
	var body *bodyError
	switch {
	case errors.As(err, &large):
		Error(c.w, c.r, http.StatusRequestEntityTooLarge, "the body is larger than the limit")
	case errors.As(err, &body):
		Error(c.w, c.r, http.StatusInternalServerError, body.Error())
	case errors.Is(err, httpapi.ErrNoTurn):
		Error(c.w, c.r, http.StatusServiceUnavailable, err.Error())
	default:
		Error(c.w, c.r, http.StatusInternalServerError, c.zones.Reason(err))
	}
}

// bodyError is the error of a body that cannot be read.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "the body cannot be read: " + e.err.Error() }

// decode reads the body. Names of members match in any case: external-dns v0.14 sends Create, later versions create. It
// takes a turn of the project: a million targets use a processor for seconds.
func (c *call) decode(into any) error {
	b, err := io.ReadAll(c.r.Body)
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return err
	}
	if err == nil {
		if busy := httpapi.TakeTurnFor(c.r.Context(), len(b)); busy != nil {
			return busy
		}
		defer httpapi.EndTurn(c.r.Context())
		err = strictjson.Unmarshal(b, into)
	}
	if err != nil {
		return &bodyError{err}
	}
	return nil
}

// write writes a reply.
func (c *call) write(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a bug: the types of replies can always be encoded
	}
	c.w.Header().Set("Content-Type", mediaType)
	_, _ = c.w.Write(b) // the client may have closed the connection; ignore the error
}

// domainFilter names the domains that external-dns may write.
type domainFilter struct {
	Include []string `json:"include"`
}

// negotiate returns the zones of the caller. external-dns asks once, when it starts.
func (c *call) negotiate() error {
	var zones []zone.Zone
	err := c.zones.View(func(v store.View) (err error) {
		zones, err = c.primaries(v)
		return err
	})
	if err != nil {
		return err
	}
	out := domainFilter{Include: []string{}}
	for _, z := range zones {
		out.Include = append(out.Include, hostText(z.Name))
	}
	c.write(out)
	return nil
}

// primaries returns the zones whose record sets the caller may change.
func (c *call) primaries(v store.View) ([]zone.Zone, error) {
	zones, err := c.zones.Zones(v)
	return slices.DeleteFunc(zones, func(z zone.Zone) bool { return z.Kind != zone.Primary }), err
}

// records returns the record sets of all zones of the caller, without those that the server maintains itself.
func (c *call) records() error {
	c.zones.Stream(mediaType, func(w io.Writer) error {
		return c.zones.View(func(v store.View) error {
			zones, err := c.primaries(v)
			if err != nil {
				return err
			}
			b := bufio.NewWriterSize(w, 64<<10)
			_ = b.WriteByte('[') // Flush returns the first error of all writes
			list := &listWriter{to: b}
			for _, z := range zones {
				if err := v.RecordSets(z.ID, list.add); err != nil {
					return err
				}
			}
			_ = b.WriteByte(']')
			return b.Flush()
		})
	})
	return nil
}

// listWriter writes record sets as a JSON array of endpoints.
type listWriter struct {
	to   *bufio.Writer
	some bool
}

func (l *listWriter) add(s zone.RecordSet) (bool, error) {
	if s.Hidden || s.Managed || len(s.Data) == 0 {
		return true, nil
	}
	b, err := json.Marshal(endpointOf(s))
	if err != nil {
		return false, err
	}
	if l.some {
		_ = l.to.WriteByte(',')
	}
	l.some = true
	_, err = l.to.Write(b)
	return true, err
}
