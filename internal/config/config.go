// Package config reads the configuration file of nameplane serve.
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
)

// Config is everything that can be configured. Example says what each setting means. Secrets are not among them, only the
// files that hold them, so that a configuration can be shown to anybody.
type Config struct {
	Data      string    `yaml:"data"`
	User      string    `yaml:"user"`
	Log       Log       `yaml:"log"`
	DNS       DNS       `yaml:"dns"`
	HTTP      HTTP      `yaml:"http"`
	Apps      Apps      `yaml:"apps"`
	MEP       MEP       `yaml:"mep"`
	Forward   Forward   `yaml:"forward"`
	Transfer  Transfer  `yaml:"transfer"`
	Follow    Follow    `yaml:"follow"`
	MEC       MEC       `yaml:"mec"`
	Explain   Explain   `yaml:"explain"`
	Journal   Journal   `yaml:"journal"`
	Designate Designate `yaml:"designate"`
}

// Log is how the program tells what it does.
type Log struct {
	Format string `yaml:"format"`
	Level  string `yaml:"level"`
}

// DNS is the door for queries.
type DNS struct {
	Listen           []string `yaml:"listen"`
	Version          string   `yaml:"version"`
	NSID             string   `yaml:"nsid"`
	UDPSize          int      `yaml:"udp_size"`
	CookieSecretFile string   `yaml:"cookie_secret_file"`
	RRL              RRL      `yaml:"rrl"`
	TCP              TCP      `yaml:"tcp"`
}

// RRL is response rate limiting.
type RRL struct {
	Enabled   bool          `yaml:"enabled"`
	Responses int           `yaml:"responses"`
	Negative  int           `yaml:"negative"`
	Errors    int           `yaml:"errors"`
	Slip      int           `yaml:"slip"`
	Window    time.Duration `yaml:"window"`
	Exempt    []string      `yaml:"exempt"`
}

// TCP bounds what TCP clients may take.
type TCP struct {
	MaxConnections int           `yaml:"max_connections"`
	MaxPerClient   int           `yaml:"max_per_client"`
	MaxQueries     int           `yaml:"max_queries"`
	IdleTimeout    time.Duration `yaml:"idle_timeout"`
	ReadTimeout    time.Duration `yaml:"read_timeout"`
	WriteTimeout   time.Duration `yaml:"write_timeout"`
}

// HTTP is the door for management.
type HTTP struct {
	Listen         string        `yaml:"listen"`
	PublicURL      string        `yaml:"public_url"`
	TLS            TLS           `yaml:"tls"`
	MaxConnections int           `yaml:"max_connections"`
	MaxBody        Size          `yaml:"max_body"`
	MaxImport      Size          `yaml:"max_import"`
	Stall          time.Duration `yaml:"stall"`
	SessionLife    time.Duration `yaml:"session_life"`
}

// TLS names PEM files.
type TLS struct {
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`
	ClientCA string `yaml:"client_ca"`
}

// Journal bounds the history of each zone.
type Journal struct {
	Changes    int `yaml:"changes"`
	RecordSets int `yaml:"record_sets"`
}

// Designate is what new zones get, and how much of it.
type Designate struct {
	Nameservers []string `yaml:"nameservers"`
	DefaultTTL  uint32   `yaml:"default_ttl"`
	MinTTL      uint32   `yaml:"min_ttl"`
	Quotas      Quotas   `yaml:"quotas"`
}

// Quotas are limits of projects that have none of their own; -1 is no limit.
type Quotas struct {
	Zones            int `yaml:"zones"`
	ZoneRecordsets   int `yaml:"zone_recordsets"`
	ZoneRecords      int `yaml:"zone_records"`
	RecordsetRecords int `yaml:"recordset_records"`
	APIExportSize    int `yaml:"api_export_size"`
}

// Default is the configuration of a server without a file.
func Default() Config {
	return Config{
		Data: "data",
		Log:  Log{Format: "text", Level: "info"},
		DNS: DNS{
			Listen:  []string{":53"},
			UDPSize: 1232,
			RRL:     RRL{Enabled: true, Responses: 1000, Negative: 500, Errors: 200, Slip: 2, Window: time.Second, Exempt: []string{}},
			TCP: TCP{MaxConnections: 4096, MaxPerClient: 128, IdleTimeout: 10 * time.Second, ReadTimeout: 5 * time.Second,
				WriteTimeout: 5 * time.Second},
		},
		HTTP: HTTP{Listen: "127.0.0.1:8053", MaxConnections: 1024, MaxBody: 1 << 20, MaxImport: 128 << 20,
			Stall: 30 * time.Second, SessionLife: time.Hour},
		Apps: Apps{Authentication: AuthToken, JWT: []JWT{}, Put: "full", MaxConnections: 1024},
		MEP:  MEP{Authentication: AuthToken, Platforms: []string{}, MaxConnections: 256},
		Forward: Forward{Upstreams: []string{}, Clients: []string{}, Policy: "ordered", Timeout: 2 * time.Second, MaxInFlight: 1024,
			CacheSize: 32 << 20, MaxStale: 24 * time.Hour},
		Transfer: Transfer{Allow: []string{}, AllowKeys: []string{}, Secondaries: []Secondary{}, MaxTransfers: 32, MaxPerClient: 8,
			MaxTime: time.Hour, MaxZone: 256 << 20},
		Follow: Follow{Resolvers: []string{}, Interval: 1800 * time.Second, TTLFloor: 30 * time.Second, Timeout: 2 * time.Second, Rate: 100,
			Parallel: 16, MaxAddresses: 20, OwnZones: OwnZonesProject},
		MEC:     MEC{MaxApps: 100_000, MaxRules: 1000, MaxEvents: 10_000, Callbacks: Callbacks{Networks: []string{}}},
		Explain: Explain{Enabled: true, Registry: true, Parallel: 4, PerClient: 20, PerTarget: 6, Keep: 30, KeepAll: 5000},
		Journal: Journal{Changes: 10_000, RecordSets: 10_000},
		Designate: Designate{Nameservers: []string{"ns1.localhost."}, DefaultTTL: 3600,
			Quotas: Quotas{Zones: -1, ZoneRecordsets: -1, ZoneRecords: -1, RecordsetRecords: 20, APIExportSize: -1}},
	}
}

// Load reads a file. Paths in it are relative to its folder, so that it means the same wherever the program is started.
func Load(path string) (Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	c, set, err := parse(path, b)
	if err != nil {
		return Config{}, err
	}
	files := []*string{&c.DNS.CookieSecretFile, &c.Forward.TLSCA}
	for _, t := range []*TLS{&c.HTTP.TLS, &c.Apps.TLS, &c.MEP.TLS} {
		files = append(files, &t.Cert, &t.Key, &t.ClientCA)
	}
	for i := range c.Apps.JWT {
		files = append(files, &c.Apps.JWT[i].Keys)
	}
	if set["data"] != nil {
		files = append(files, &c.Data)
	}
	for _, f := range files {
		if *f != "" && !filepath.IsAbs(*f) {
			*f = filepath.Join(filepath.Dir(path), *f)
		}
	}
	return c, nil
}

// CookieSecret reads the secret of DNS cookies; zeros, which stand for a random one, when no file is named.
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
		return secret, fmt.Errorf("dns.cookie_secret_file: %s must hold 32 hexadecimal digits; make them with: openssl rand -hex 16",
			d.CookieSecretFile)
	}
	return [16]byte(raw), nil
}

// ExemptNetworks are the networks of Exempt, which Parse has checked.
func (r RRL) ExemptNetworks() []netip.Prefix { return networks(r.Exempt) }

func networks(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		if p, err := parseNetwork(s); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// NameserverNames are the names of Nameservers, which Parse has checked.
func (d Designate) NameserverNames() []dnsname.Name {
	var out []dnsname.Name
	for _, s := range d.Nameservers {
		if n, err := dnsname.Parse(s); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// parseNetwork reads a prefix, or an address as a network of one.
func parseNetwork(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a.Prefix(a.BitLen())
	}
	p, err := netip.ParsePrefix(s)
	return p.Masked(), err
}
