package config

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/nameplane/nameplane/internal/resolve"
)

// Forward is what becomes of queries for names that are not ours.
type Forward struct {
	Upstreams    []string      `yaml:"upstreams"`
	Clients      []string      `yaml:"clients"`
	OpenResolver bool          `yaml:"open_resolver"`
	Policy       string        `yaml:"policy"`
	Timeout      time.Duration `yaml:"timeout"`
	MaxInFlight  int           `yaml:"max_in_flight"`
	CacheSize    Size          `yaml:"cache_size"`
	MaxStale     time.Duration `yaml:"max_stale"`
	TLSCA        string        `yaml:"tls_ca"`
	MixCase      bool          `yaml:"mix_case"`
	AskPrivate   bool          `yaml:"ask_private"`
}

// Servers are the servers of Upstreams, which Parse has checked.
func (f Forward) Servers() []resolve.Server {
	var out []resolve.Server
	for _, s := range f.Upstreams {
		if srv, err := resolve.ParseServer(s); err == nil {
			out = append(out, srv)
		}
	}
	return out
}

// ClientNetworks are the networks of Clients, which Parse has checked.
func (f Forward) ClientNetworks() []netip.Prefix { return networks(f.Clients) }

// Roots reads whom to trust for the certificates of upstreams; nil, which stands for whom the system trusts, when no file is
// named.
func (f Forward) Roots() (*x509.CertPool, error) {
	if f.TLSCA == "" {
		return nil, nil
	}
	b, err := os.ReadFile(f.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("forward.tls_ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("forward.tls_ca: %s holds no certificate in PEM form", f.TLSCA)
	}
	return pool, nil
}

func (v *checker) forward(f Forward) {
	seen := map[resolve.Server]bool{}
	for i, s := range f.Upstreams {
		key := fmt.Sprintf("forward.upstreams[%d]", i)
		server, err := resolve.ParseServer(s)
		v.need(err == nil, key, "must be an address, such as 127.0.0.1:53, tcp://192.0.2.1:53 or tls://192.0.2.1:853#dns.example.org")
		v.need(err != nil || !seen[server], key, "is there already")
		seen[server] = true
	}
	v.networks("forward.clients", f.Clients)
	v.need(len(f.Clients) == 0 || len(f.Upstreams) > 0, "forward.clients", "has nobody to forward to: set forward.upstreams")
	for i, s := range f.Clients {
		p, err := parseNetwork(s)
		v.need(err != nil || p.Bits() > 0 || f.OpenResolver, fmt.Sprintf("forward.clients[%d]", i), "lets the whole internet resolve "+
			"names here and attack others with the answers: name your own networks, or set forward.open_resolver as well if that is meant")
	}
	v.oneOf("forward.policy", f.Policy, "ordered", "random")
	v.within("forward.timeout", f.Timeout, 100*time.Millisecond, 2400*time.Millisecond)
	v.atLeast("forward.max_in_flight", f.MaxInFlight, 1)
	v.need(64<<10 <= f.CacheSize && f.CacheSize <= 1<<40, "forward.cache_size", "must be from 64KiB to 1024GiB")
	v.within("forward.max_stale", f.MaxStale, 0, 7*24*time.Hour)
}
