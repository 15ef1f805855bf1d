package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// newLogger writes to standard error in the configured form. The level can be changed while it is in use.
func newLogger(c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	setLevel(level, c)
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts)), level
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts)), level
}

func setLevel(level *slog.LevelVar, c config.Log) {
	var l slog.Level
	if l.UnmarshalText([]byte(c.Level)) == nil { // config has checked it
		level.Set(l)
	}
}

func (d *daemon) dnsConfig() (dnsserver.Config, error) {
	c := d.cfg.DNS
	secret, err := c.CookieSecret()
	slip := c.RRL.Slip
	if slip == 0 {
		slip = -1 // none; the zero value would be the default
	}
	return dnsserver.Config{
		Listen: c.Listen, Snapshot: d.publisher.Snapshot, Version: c.Version, NSID: c.NSID, UDPSize: c.UDPSize, Workers: d.spare.processors,
		RRL: dnsserver.RRLConfig{Off: !c.RRL.Enabled, Responses: c.RRL.Responses, Negative: c.RRL.Negative,
			Errors: c.RRL.Errors, Slip: slip, Window: c.RRL.Window, Exempt: c.RRL.ExemptNetworks()},
		TCP: dnsserver.TCPConfig{MaxConns: c.TCP.MaxConnections, MaxPerClient: c.TCP.MaxPerClient,
			MaxQueries: c.TCP.MaxQueries, IdleTimeout: c.TCP.IdleTimeout, ReadTimeout: c.TCP.ReadTimeout,
			WriteTimeout: c.TCP.WriteTimeout},
		Cookies: secret,
		Log:     d.log,
	}, err
}

func (d *daemon) httpConfig() httpapi.ListenConfig {
	c := d.cfg.HTTP
	return httpapi.ListenConfig{Addr: c.Listen, MaxConns: c.MaxConnections, Log: d.log,
		TLS: httpapi.TLSFiles{Cert: c.TLS.Cert, Key: c.TLS.Key, ClientCA: c.TLS.ClientCA}}
}

func (d *daemon) frame(m *httpapi.Metrics) httpapi.Frame {
	c := d.cfg.HTTP
	return httpapi.Frame{Access: d.access, Log: d.log, PublicURL: c.PublicURL, Metrics: m,
		Limits: httpapi.Limits{Body: int64(c.MaxBody), Stall: c.Stall,
			Bodies: map[string]int64{"/v2/zones/tasks/imports": int64(c.MaxImport)}}}
}

func (d *daemon) designateSettings() designate.Settings {
	c := d.cfg.Designate
	s := designate.Settings{BaseURL: strings.TrimSuffix(d.cfg.HTTP.PublicURL, "/"), DefaultTTL: c.DefaultTTL,
		MinTTL: c.MinTTL, MaxImport: int64(d.cfg.HTTP.MaxImport), Spool: d.data,
		Quotas: designate.Quotas{Zones: c.Quotas.Zones, ZoneRecordsets: c.Quotas.ZoneRecordsets,
			ZoneRecords: c.Quotas.ZoneRecords, RecordsetRecords: c.Quotas.RecordsetRecords,
			APIExportSize: c.Quotas.APIExportSize}}
	for i, n := range c.NameserverNames() {
		s.Nameservers = append(s.Nameservers, designate.Nameserver{Hostname: n, Priority: i + 1})
	}
	return s
}

// reloadOnHangup reads the configuration and the certificates again at each SIGHUP.
func (d *daemon) reloadOnHangup(ctx context.Context) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for {
		select {
		case <-hangup:
			d.reload()
		case <-ctx.Done():
			return nil
		}
	}
}

// reload takes over what can change while serving: certificates and the level of the log. Of everything else that
// differs it says that it needs a restart. A mistake leaves all as it was.
func (d *daemon) reload() {
	next := d.cfg
	if d.load != nil {
		c, err := d.load()
		if err != nil {
			d.log.Error("configuration not reloaded, the old one stays", "error", err)
			return
		}
		next = c
	}
	if err := d.http.Reload(); err != nil {
		d.log.Error("certificates not reloaded, the old ones stay", "error", err)
		return
	}
	setLevel(d.level, next.Log)
	rest := next
	rest.Log.Level = d.cfg.Log.Level
	if keys := config.Diff(d.cfg, rest); len(keys) > 0 {
		d.log.Warn("these settings changed and take effect with the next start", "settings", strings.Join(keys, ", "))
	}
	d.log.Info("reloaded configuration and certificates")
}
