package daemon

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/config"
	"github.com/nameplane/nameplane/internal/dnsserver"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
)

// NewLogger returns a logger to standard error, and its level, which Reload can change.
func NewLogger(c config.Log) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	setLevel(level, c)
	opts := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, opts)), level
	}
	return slog.New(slog.NewTextHandler(os.Stderr, opts)), level
}

// setLevel changes the level of a log that is in use: every part of the server keeps the same logger.
func setLevel(level *slog.LevelVar, c config.Log) {
	var l slog.Level
	if l.UnmarshalText([]byte(c.Level)) == nil { // config has checked it
		level.Set(l)
	}
}

// dnsConfig translates the settings for the DNS server. TLS 1.2 is enough for queries (RFC 8310 §9), and dnspeer
// refuses transfers over it. QUIC always uses TLS 1.3 (RFC 9001 §4.2).
func (d *Daemon) dnsConfig() (dnsserver.Config, error) {
	c := d.cfg.DNS
	secret, err := c.CookieSecret()
	if err != nil {
		return dnsserver.Config{}, err
	}
	tlsConfig, err := d.dnsTLS(len(c.TLS) > 0, "dot", tls.VersionTLS12)
	if err != nil {
		return dnsserver.Config{}, err
	}
	quicConfig, err := d.dnsTLS(len(c.QUIC) > 0, "doq", tls.VersionTLS13)
	var forwarder dnsserver.Forwarder
	if d.forwarder != nil { // a nil *Forwarder would be a non-nil interface
		forwarder = d.forwarder
	}
	return dnsserver.Config{
		Forward: forwarder,
		Peers:   d.peers,
		Listen:  c.Listen, TLS: c.TLS, TLSConfig: tlsConfig, QUIC: c.QUIC, QUICConfig: quicConfig, Proxies: c.ProxyNetworks(),
		Snapshot: d.publisher.Snapshot, Stale: d.following.aliases.Stale,
		Version: c.Version, NSID: c.NSID, UDPSize: c.UDPSize,
		RRL: dnsserver.RRLConfig{Off: c.RRL.Responses == config.Unlimited, Responses: int(c.RRL.Responses),
			Exempt: c.RRL.ExemptNetworks()},
		TCP:     dnsserver.TCPConfig{MaxConns: c.TCP.MaxConnections, MaxPerClient: c.TCP.MaxPerClient},
		Cookies: secret,
		Log:     d.log,
	}, err
}

// dnsTLS returns the TLS configuration of a DNS listener; nil if there is none. A client may show a certificate of
// another server, but needs none.
func (d *Daemon) dnsTLS(listens bool, protocol string, version uint16) (*tls.Config, error) {
	if !listens {
		return nil, nil
	}
	set, err := certs.Open(certs.Files{Cert: d.cfg.DNS.Cert, Key: d.cfg.DNS.Key, ClientCA: d.cfg.Transfer.TLSCA},
		&tls.Config{MinVersion: version, NextProtos: []string{protocol}, ClientAuth: tls.VerifyClientCertIfGiven})
	if err != nil {
		return nil, fmt.Errorf("dns.cert: %w", err)
	}
	d.dnsCerts = append(d.dnsCerts, set)
	return set.Config(), nil
}

// forwardConfig returns the configuration of the forwarder. Without upstreams, it forwards for no client.
func (d *Daemon) forwardConfig(c config.Forward) (forward.Config, error) {
	roots, err := c.Roots()
	f := forward.Config{Upstreams: c.Servers(), Clients: c.ClientNetworks(), Roots: roots, Log: d.log,
		CacheSize: int(c.CacheSize), MaxStale: c.MaxStale, AskPrivate: c.AskPrivate}
	if len(f.Upstreams) == 0 {
		f.Upstreams, f.Clients = d.cfg.Forward.Servers(), nil
	}
	return f, err
}

// designateSettings numbers the name servers in the order of the configuration: the first one becomes the MNAME of new
// zones.
func (d *Daemon) designateSettings() designate.Settings {
	c := d.cfg.Designate
	s := designate.Settings{BaseURL: strings.TrimSuffix(d.cfg.HTTP.PublicURL, "/"), DefaultTTL: c.DefaultTTL,
		MinTTL: c.MinTTL, MaxImport: int64(d.cfg.HTTP.MaxImport), Spool: d.data,
		Forwards: len(d.cfg.Forward.Upstreams) > 0, Special: d.cfg.Special()}
	for i, n := range c.NameserverNames() {
		s.Nameservers = append(s.Nameservers, designate.Nameserver{Hostname: n, Priority: i + 1})
	}
	return s
}

// Reload reads the configuration again and applies the settings that can change while serving: certificates, keys and
// issuers of JWTs, forwarding, following, transfers, and the log level. It logs other settings that differ, because
// they need a restart. After a mistake in the configuration, nothing changes.
func (d *Daemon) Reload() {
	next, err := d.load()
	if err != nil {
		d.log.Error("configuration not reloaded, the old one stays", "error", err)
		return
	}
	apply, err := d.prepare(next)
	if err != nil {
		d.log.Error("certificates not reloaded, the old ones stay", "error", err)
		return
	}
	apply()
	setLevel(d.level, next.Log)
	if keys := d.needRestart(next); len(keys) > 0 {
		d.log.Warn("these settings changed and take effect with the next start", "settings", strings.Join(keys, ", "))
	}
	d.log.Info("reloaded configuration and certificates")
}

// needRestart returns the settings of next that differ from the running ones and that Reload does not apply.
func (d *Daemon) needRestart(next config.Config) []string {
	rest := next
	rest.Log.Level, rest.Apps.JWT = d.cfg.Log.Level, d.cfg.Apps.JWT
	t := d.cfg.Transfer
	rest.Transfer.Allow, rest.Transfer.AllowKeys, rest.Transfer.Secondaries = t.Allow, t.AllowKeys, t.Secondaries
	rest.Follow = d.cfg.Follow
	if d.forwarder != nil {
		rest.Forward = d.cfg.Forward
	}
	return config.Diff(d.cfg, rest)
}

// prepare reads every file that a configuration names, and changes nothing. apply cannot fail.
func (d *Daemon) prepare(next config.Config) (apply func(), err error) {
	issuers, err := d.issuers.Prepare(next.Apps.Issuers())
	if err != nil {
		return nil, err
	}
	steps := []func(){issuers, func() { d.reloadTransfer(next.Transfer) }}
	for _, s := range d.open() {
		certs, err := s.Prepare()
		if err != nil {
			return nil, err
		}
		steps = append(steps, certs)
	}
	for _, s := range d.dnsCerts {
		step, err := s.Prepare()
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	transferTLS, err := d.prepareTransferTLS()
	if err != nil {
		return nil, err
	}
	steps = append(steps, transferTLS, func() { d.following.reload(next.Follow) })
	if d.forwarder != nil {
		c, err := d.forwardConfig(next.Forward)
		if err != nil {
			return nil, err
		}
		steps = append(steps, func() { d.forwarder.SetConfig(c) })
	}
	return func() {
		for _, step := range steps {
			step()
		}
	}, nil
}
