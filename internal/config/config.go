// Package config reads the configuration file of nameplane serve.
//
// Start with Config in config.go: its fields are the settings, and example.yaml documents each of them. Parse in
// parse.go decodes a file and reports mistakes with their position; validate.go checks the values.
package config

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/follow"
	"github.com/nameplane/nameplane/internal/forward"
	"github.com/nameplane/nameplane/internal/httpapi/designate"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/specialaddr"
	"github.com/nameplane/nameplane/internal/wire"
)

// Config has all settings. Example documents each of them. It contains no secrets, only the names of files with
// secrets, so that a configuration can be shown to anybody.
type Config struct {
	Data      string    `yaml:"data"`
	User      string    `yaml:"user"`
	NAT64     []string  `yaml:"nat64"`
	Log       Log       `yaml:"log"`
	DNS       DNS       `yaml:"dns"`
	HTTP      HTTP      `yaml:"http"`
	Apps      Apps      `yaml:"apps"`
	MEP       MEP       `yaml:"mep"`
	Webhook   Webhook   `yaml:"externaldns"`
	Forward   Forward   `yaml:"forward"`
	Transfer  Transfer  `yaml:"transfer"`
	Follow    Follow    `yaml:"follow"`
	MEC       MEC       `yaml:"mec"`
	Explain   Explain   `yaml:"explain"`
	Journal   Journal   `yaml:"journal"`
	Designate Designate `yaml:"designate"`
}

// Log configures the format and level of the log.
type Log struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// DNS configures the listener for queries.
type DNS struct {
	Listen           []string `yaml:"listen"`
	TLS              []string `yaml:"tls"`
	HTTPS            []string `yaml:"https"`
	QUIC             []string `yaml:"quic"`
	Cert             string   `yaml:"cert"`
	Key              string   `yaml:"key"`
	Proxies          []string `yaml:"proxies"`
	Version          string   `yaml:"version"`
	NSID             string   `yaml:"nsid"`
	UDPSize          int      `yaml:"udp_size"`
	CookieSecretFile string   `yaml:"cookie_secret_file"`
	RRL              RRL      `yaml:"rrl"`
	TCP              TCP      `yaml:"tcp"`
}

// RRL configures response rate limiting.
type RRL struct {
	Responses Limit    `yaml:"responses"`
	Exempt    []string `yaml:"exempt"`
}

// TCP limits the connections of TCP clients.
type TCP struct {
	MaxConnections int `yaml:"max_connections"`
	MaxPerClient   int `yaml:"max_per_client"`
}

// HTTP configures the listener for management.
type HTTP struct {
	Listen    string `yaml:"listen"`
	PublicURL string `yaml:"public_url"`
	TLS       TLS    `yaml:"tls"`
	MaxImport Size   `yaml:"max_import"`
}

// TLS names PEM files.
type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

// Journal limits the history of each zone.
type Journal struct {
	Changes int `yaml:"changes"`
}

// Designate has the defaults and limits of zones created through the API.
type Designate struct {
	Nameservers []string `yaml:"nameservers"`
	DefaultTTL  uint32   `yaml:"default_ttl"`
	MinTTL      uint32   `yaml:"min_ttl"`
	Quotas      Quotas   `yaml:"quotas"`
}

// Quotas are the quotas of projects without their own.
type Quotas struct {
	Zones            Limit `yaml:"zones"`
	ZoneRecordsets   Limit `yaml:"zone_recordsets"`
	ZoneRecords      Limit `yaml:"zone_records"`
	RecordsetRecords Limit `yaml:"recordset_records"`
}

func defaultQuotas() Quotas {
	q := publish.DefaultQuotas()
	return Quotas{Zones: Limit(q.Zones), ZoneRecordsets: Limit(q.ZoneRecordsets), ZoneRecords: Limit(q.ZoneRecords),
		RecordsetRecords: Limit(q.RecordsetRecords)}
}

// OfProject returns the quotas of a project. Those that are no settings have their defaults.
func (q Quotas) OfProject() publish.Quotas {
	out := publish.DefaultQuotas()
	out.Zones, out.ZoneRecordsets, out.ZoneRecords = int(q.Zones), int(q.ZoneRecordsets), int(q.ZoneRecords)
	out.RecordsetRecords = int(q.RecordsetRecords)
	return out
}

// Default returns the configuration of a server without a file. Where a package has a default, Default uses it.
func Default() Config {
	return Config{
		Data:  "data",
		NAT64: []string{},
		Log:   Log{Format: "text", Level: "info"},
		DNS: DNS{
			Listen:  []string{":53"},
			TLS:     []string{},
			HTTPS:   []string{},
			QUIC:    []string{},
			Proxies: []string{},
			UDPSize: wire.UDPSize,
			RRL:     RRL{Responses: 1000, Exempt: []string{}},
			TCP:     TCP{MaxConnections: 4096, MaxPerClient: 128},
		},
		HTTP: HTTP{Listen: "127.0.0.1:8053", MaxImport: designate.DefaultMaxImport},
		Apps: Apps{Authentication: AuthToken, JWT: []JWT{}},
		MEP:  MEP{Authentication: AuthToken, Platforms: []string{}},
		Forward: Forward{Upstreams: []string{}, Clients: []string{}, CacheSize: forward.DefaultCacheSize,
			MaxStale: 24 * time.Hour}, // the minimum that RFC 8767 §5 suggests
		Transfer: Transfer{Allow: []string{}, AllowKeys: []string{}, Secondaries: []Secondary{}},
		Follow: Follow{Resolvers: []string{}, Interval: follow.DefaultCeiling, TTLFloor: follow.DefaultFloor,
			OwnZones: OwnZonesProject},
		MEC:     MEC{Callbacks: Callbacks{Networks: []string{}}},
		Explain: Explain{Enabled: true, Registry: true},
		Journal: Journal{Changes: publish.DefaultJournalLimit},
		Designate: Designate{Nameservers: []string{designate.DefaultNameserver}, DefaultTTL: designate.DefaultTTL,
			Quotas: defaultQuotas()},
	}
}

// Load reads a file. Paths in it are relative to its directory, wherever the program is started.
func Load(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, b)
}

// relativeTo makes paths relative to a directory. It changes the data directory only when the file sets it (data).
func (c *Config) relativeTo(dir string, data bool) {
	files := []*string{&c.DNS.CookieSecretFile, &c.DNS.Cert, &c.DNS.Key, &c.HTTP.TLS.Cert, &c.HTTP.TLS.Key,
		&c.HTTP.TLS.ClientCA, &c.Apps.ClientCA, &c.MEP.ClientCA, &c.Forward.TLSCA, &c.Transfer.TLSCA, &c.Webhook.TokenFile}
	for i := range c.Apps.JWT {
		files = append(files, &c.Apps.JWT[i].Keys)
	}
	if data {
		files = append(files, &c.Data)
	}
	for _, f := range files {
		if *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(dir, *f)
		}
	}
}

// CookieSecret reads the secret of DNS cookies. Without a file it returns zeros, which stand for a random secret.
func (d DNS) CookieSecret() (secret [16]byte, err error) {
	if d.CookieSecretFile == "" {
		return secret, nil
	}
	b, err := os.ReadFile(d.CookieSecretFile)
	if err != nil {
		return secret, fmt.Errorf("dns.cookie_secret_file: %w", err)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(raw) != len(secret) {
		return secret, fmt.Errorf("dns.cookie_secret_file: %s must contain 32 hexadecimal digits; "+
			"create them with: openssl rand -hex 16",
			d.CookieSecretFile)
	}
	return [16]byte(raw), nil
}

// ProxyNetworks returns the networks of Proxies, which Parse has checked.
func (d DNS) ProxyNetworks() []netip.Prefix { return parsed(d.Proxies, parseNetwork) }

// ExemptNetworks returns the networks of Exempt, which Parse has checked.
func (r RRL) ExemptNetworks() []netip.Prefix { return parsed(r.Exempt, parseNetwork) }

// parsed returns the parsed texts. Parse has checked them, so it ignores errors.
func parsed[T any](texts []string, parse func(string) (T, error)) []T {
	var out []T
	for _, s := range texts {
		if v, err := parse(s); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// Special returns the table of special-purpose addresses with the prefixes of NAT64, which Parse has checked.
func (c Config) Special() specialaddr.Table {
	return specialaddr.Table{NAT64: parsed(c.NAT64, specialaddr.ParseNAT64)}
}

// NameserverNames returns the names of Nameservers, which Parse has checked.
func (d Designate) NameserverNames() []dnsname.Name { return parsed(d.Nameservers, dnsname.Parse) }

// parseNetwork parses a prefix, or an address as a network of one address.
func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}
