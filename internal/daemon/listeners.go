package daemon

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/nameplane/nameplane/internal/access"
	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/admin"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/httpapi/externaldns"
	"github.com/nameplane/nameplane/internal/httpapi/identity"
	"github.com/nameplane/nameplane/internal/httpapi/mecapi"
	"github.com/nameplane/nameplane/internal/httpapi/openapi"
	"github.com/nameplane/nameplane/internal/httpapi/powerdns"
	"github.com/nameplane/nameplane/internal/httpapi/servermgmt"
	"github.com/nameplane/nameplane/internal/mec"
	"github.com/nameplane/nameplane/internal/store"
)

// These are the limits of the bodies of applications and platforms, in bytes. The limit of applications is
// EdgeGallery's own. The limit of platforms fits all rules of an application, or some thousand records; the APIs have
// smaller limits for single ones.
const (
	appBody      = 4 << 10
	platformBody = 512 << 10
	batchBody    = 1 << 20
	powerDNSBody = 2 << 20 // the limit of PowerDNS: a request can contain a whole zone
)

// importsPath is the path for uploading zone files.
const importsPath = "/v2/zones/tasks/imports"

// mepConns limits the connections of edge platforms, and webhookConns those of external-dns: both are few.
const (
	mepConns     = 256
	webhookConns = 64
)

// healthPath is the liveness endpoint of EdgeGallery; it returns the same as /healthz.
const healthPath = "/health"

// listeners are the HTTP listeners. Each has its own Frame, because authentication and limits differ.
type listeners struct {
	http    *httpapi.Server   // all management APIs
	apps    *httpapi.Server   // applications; nil when not configured
	mep     *httpapi.Server   // edge platforms; nil when not configured
	webhook *httpapi.Server   // external-dns; nil when not configured
	doh     []*httpapi.Server // DNS over HTTPS
	issuers *access.Issuers   // issuers of the JWTs of applications
}

// open returns the configured listeners.
func (d listeners) open() (out []*httpapi.Server) {
	for _, s := range []*httpapi.Server{d.http, d.apps, d.mep, d.webhook} {
		if s != nil {
			out = append(out, s)
		}
	}
	return append(out, d.doh...)
}

// openHTTPS binds the addresses for DNS over HTTPS. They have no API, and need no token.
func (d *Daemon) openHTTPS() error {
	c := d.cfg.DNS
	if len(c.HTTPS) == 0 {
		return nil
	}
	h := d.dns.HTTPS()
	for _, addr := range c.HTTPS {
		s, err := httpapi.Listen(httpapi.ListenConfig{Name: "dns.https", Addr: addr, HTTP2: true, Log: d.log,
			MaxConns: c.TCP.MaxConnections, MaxPerClient: c.TCP.MaxPerClient, SendBuffer: dnsserver.SendBuffer,
			TLS: certs.Files{Cert: c.Cert, Key: c.Key}}, h)
		if err != nil {
			return err
		}
		d.doh = append(d.doh, s)
	}
	return nil
}

// openListeners binds every HTTP address.
func (d *Daemon) openListeners() (err error) {
	m := httpapi.NewMetrics()
	c := d.cfg
	if d.issuers, err = access.OpenIssuers(c.Apps.Issuers()); err != nil {
		return err
	}
	if d.http, err = d.listen("http", c.HTTP.Listen, c.HTTP.TLS, 0,
		httpapi.WithDNSPath(d.managementFrame(m).Wrap(d.management(m)))); err != nil {
		return err
	}
	if c.Apps.Listen != "" {
		if d.apps, err = d.listen("apps", c.Apps.Listen, c.ListenerTLS(c.Apps.Listen, c.Apps.ClientCA), 0,
			d.appsFrame(m).Wrap(d.applications())); err != nil {
			return err
		}
	}
	if c.MEP.Listen != "" {
		if d.mep, err = d.listen("mep", c.MEP.Listen, c.ListenerTLS(c.MEP.Listen, c.MEP.ClientCA), mepConns,
			d.mepFrame(m).Wrap(d.platform())); err != nil {
			return err
		}
	}
	if c.Webhook.Listen != "" {
		d.webhook, err = d.listen("externaldns", c.Webhook.Listen, c.ListenerTLS(c.Webhook.Listen, ""), webhookConns,
			d.webhookFrame(m).Wrap(d.webhookHandler()))
	}
	return err
}

// listen binds an address. conns limits its connections; 0 selects the default of httpapi.
func (d *Daemon) listen(name, addr string, t config.TLS, conns int, h http.Handler) (*httpapi.Server, error) {
	return httpapi.Listen(httpapi.ListenConfig{Name: name, Addr: addr, MaxConns: conns, Log: d.log,
		TLS: certs.Files{Cert: t.Cert, Key: t.Key, ClientCA: t.ClientCA}}, h)
}

// managementFrame returns the frame of the management API.
func (d *Daemon) managementFrame(m *httpapi.Metrics) httpapi.Frame {
	c := d.cfg.HTTP
	bodies := platformBodies()
	bodies[importsPath] = int64(c.MaxImport)
	bodies[httpapi.PowerDNSPath+"/"] = powerDNSBody
	return httpapi.Frame{Access: d.access, Log: d.log, PublicURL: c.PublicURL, Metrics: m,
		Areas:  httpapi.ManagementAreas(),
		Public: []string{healthPath},
		Limits: httpapi.Limits{Bodies: bodies, Budget: d.budget, Turns: d.turns, Streamed: importsPath}}
}

// appsFrame returns the frame of Mp1.
func (d *Daemon) appsFrame(m *httpapi.Metrics) httpapi.Frame {
	identify := httpapi.ByTokenOrJWT(d.access, d.issuers)
	if d.cfg.Apps.Authentication == config.AuthNone { // behind a gateway, or on this machine; config has checked that
		identify = httpapi.Anybody(httpapi.Caller{Who: "any application", Roles: access.Roles(access.RoleApp), AnyApp: true})
	}
	return httpapi.Frame{Listener: "apps", Access: d.access, Log: d.log, Metrics: m, Areas: httpapi.AppAreas(),
		NoLogin:  true,
		Identify: identify, Limits: httpapi.Limits{Body: appBody, Budget: d.budget, Turns: d.turns}}
}

// mepFrame returns the frame of Mm5 and the management of server records.
func (d *Daemon) mepFrame(m *httpapi.Metrics) httpapi.Frame {
	identify := httpapi.ByToken(d.access)
	switch d.cfg.MEP.Authentication {
	case config.AuthCertificate:
		identify = httpapi.ByCertificate(d.cfg.MEP.Platforms)
	case config.AuthNone: // on this machine only; config has checked that
		identify = httpapi.Anybody(httpapi.Caller{Who: "platform on this machine", Roles: access.Roles(access.RolePlatform)})
	}
	return httpapi.Frame{Listener: "mep", Access: d.access, Log: d.log, Metrics: m, Areas: httpapi.PlatformAreas(),
		NoLogin: true,
		Public:  []string{healthPath}, Identify: identify,
		Limits: httpapi.Limits{Body: platformBody, Bodies: platformBodies(), Budget: d.budget, Turns: d.turns}}
}

// webhookFrame returns the frame of the webhook of external-dns.
func (d *Daemon) webhookFrame(m *httpapi.Metrics) httpapi.Frame {
	return httpapi.Frame{Listener: "externaldns", Access: d.access, Log: d.log, Metrics: m, NoLogin: true,
		Areas:    []httpapi.Area{{Prefix: "/", Roles: []string{access.RoleMember}, Error: externaldns.Error}},
		Identify: httpapi.ByTokenOrFile(d.access, d.cfg.Webhook.TokenFile),
		Limits:   httpapi.Limits{Body: externaldns.MaxBody, Budget: d.budget, Turns: d.turns}}
}

// platformBodies returns the body limits by path.
func platformBodies() map[string]int64 {
	out := map[string]int64{}
	for _, p := range httpapi.PlatformPaths {
		out[p] = platformBody
	}
	out[httpapi.ServerManagementPath] = batchBody
	return out
}

// management returns the handler of all management APIs.
func (d *Daemon) management(m *httpapi.Metrics) http.Handler {
	d.designate = &designate.API{Publisher: d.publisher, Aliases: d.following.aliases, Log: d.log,
		Settings: d.designateSettings(), Peers: d.designatePeers(), Budget: d.budget, Identity: identity.Version,
		HasProject: func(id string) bool { p, err := d.access.Project(id); return err == nil && p.ID == id }}
	d.external = externaldns.New(d.designate, d.log)
	mux, reg := http.NewServeMux(), d.registry(m)
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	mux.Handle("GET /readyz", httpapi.Readyz(d.log, d.checks()...))
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.Handle("GET /openapi.json", openapi.Handler(d.version))
	identity.API{Access: d.access, Log: d.log, PublicURL: d.cfg.HTTP.PublicURL}.Register(mux)
	admin.API{Access: d.access, Backup: d.publisher.Backup, Scrub: d.store.Scrub, Log: d.log}.Register(mux)
	d.rulesAPI().RegisterMm5(mux)
	servermgmt.API{Service: d.rules, Log: d.log}.Register(mux)
	d.explaining.register(d, mux)
	(&powerdns.API{Publisher: d.publisher, Zones: d.designate, Spool: d.data, Notify: d.notifier.Notify, Log: d.log,
		Statistics: statistics(reg, time.Now())}).Register(mux)
	mux.Handle("/", d.designate.Handler())
	return mux
}

// registry returns a registry with the metrics of all parts. It is not the global registry, because a process can run
// several servers, as tests do.
func (d *Daemon) registry(m *httpapi.Metrics) *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reg.MustRegister(d.collectors(m)...)
	return reg
}

// collectors returns the metrics of nameplane. docs/reference/metrics.md lists them.
func (d *Daemon) collectors(m *httpapi.Metrics) []prometheus.Collector {
	out := []prometheus.Collector{d.dns.Collector(),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_store_bytes",
			Help: "Size of the store's file."}, func() float64 { return float64(d.store.Size()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_store_writable",
			Help: "1 while the store takes changes; 0 after it refused one, until it has taken the next."}, func() float64 {
			return boolGauge(d.store.Refusal() == nil)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "nameplane_store_damaged",
			Help: "1 after damage of the store's file was found."}, func() float64 {
			return boolGauge(d.store.Damage() != nil)
		}), d.following}
	parts := [][]prometheus.Collector{d.publisher.Collectors(), m.Collectors(), d.following.aliases.Collectors(),
		d.peers.Collectors(), d.notifier.Collectors(), d.refresher.Collectors(), d.external.Collectors()}
	if d.explaining != nil {
		parts = append(parts, d.explaining.scans.Collectors())
	}
	if d.forwarder != nil {
		parts = append(parts, d.forwarder.Collectors())
	}
	return append(out, slices.Concat(parts...)...)
}

// boolGauge returns 1 for true and 0 for false.
func boolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// openRules opens the service behind the APIs of applications and platforms.
func (d *Daemon) openRules(ctx context.Context) (err error) {
	c := d.cfg.MEC
	opts := mec.Options{Log: d.log, Special: d.cfg.Special()}
	if allowed := c.Callbacks.Allowed(); len(allowed) > 0 {
		d.callbacks = mecapi.NewCallbacks(allowed, d.cfg.Special(), c.EdgeGallery)
		d.callbacks.Log = d.log
		opts.Deliver = d.callbacks.Deliver
	}
	d.rules, err = mec.Open(ctx, d.publisher, opts)
	return d.unreadable(err)
}

// revokeApp revokes the tokens of an application instance.
func (d *Daemon) revokeApp(ctx context.Context, actor store.Actor, app string) (n int, err error) {
	for _, t := range d.access.Tokens() {
		if t.App != app || !t.Revoked.IsZero() {
			continue
		}
		if err := d.access.RevokeToken(ctx, actor, t.ID); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// rulesAPI returns the API of DNS rules. The management listener and the one of platforms both register its Mm5 paths.
func (d *Daemon) rulesAPI() mecapi.API {
	return mecapi.API{Service: d.rules, Callbacks: d.callbacks, Log: d.log, Done: d.stopping, Revoke: d.revokeApp,
		EdgeGallery: d.cfg.MEC.EdgeGallery}
}

// applications returns the handler of the API of applications: Mp1.
func (d *Daemon) applications() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	d.rulesAPI().RegisterMp1(mux)
	mux.HandleFunc("/", notFound)
	return mux
}

// platform returns the handler of the APIs of an edge platform: Mm5 and the records of the server.
func (d *Daemon) platform() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	d.rulesAPI().RegisterMm5(mux)
	servermgmt.API{Service: d.rules, Log: d.log, EdgeGalleryStatus: d.cfg.MEC.EdgeGallery}.Register(mux)
	mux.HandleFunc("/", notFound)
	return mux
}

// webhookHandler returns the handler of the webhook of external-dns.
func (d *Daemon) webhookHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", httpapi.Healthz)
	d.external.Register(mux)
	mux.HandleFunc("/", externaldns.NotFound)
	return mux
}

// notFound answers unknown paths with a problem document, like the errors of the APIs.
func notFound(w http.ResponseWriter, r *http.Request) {
	httpapi.Problem(w, r, http.StatusNotFound, "there is nothing at this path on this listener")
}
