package config

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"time"

	"github.com/nameplane/nameplane/internal/certs"
	"github.com/nameplane/nameplane/internal/resolve"
)

// Forward configures how queries for names outside the zones of this server are answered.
type Forward struct {
	Upstreams    []string      `yaml:"upstreams"`
	Clients      []string      `yaml:"clients"`
	OpenResolver bool          `yaml:"open_resolver"`
	CacheSize    Size          `yaml:"cache_size"`
	MaxStale     time.Duration `yaml:"max_stale"` // 0 for no stale answers
	TLSCA        string        `yaml:"tls_ca"`
	AskPrivate   bool          `yaml:"ask_private"`
}

// Servers returns the servers of Upstreams, which Parse has checked.
func (f Forward) Servers() []resolve.Server { return parsed(f.Upstreams, resolve.ParseServer) }

// ClientNetworks returns the networks of Clients, which Parse has checked.
func (f Forward) ClientNetworks() []netip.Prefix { return parsed(f.Clients, parseNetwork) }

// Roots reads the CA certificates that upstreams are verified with. Without a file it returns nil, which stands for the
// CA certificates of the system.
func (f Forward) Roots() (*x509.CertPool, error) {
	if f.TLSCA == "" {
		return nil, nil
	}
	pool, err := certs.ReadCAs(f.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("forward.tls_ca: %w", err)
	}
	return pool, nil
}

// forward refuses an open resolver unless it is requested explicitly: attackers use open resolvers for amplification.
func (v *checker) forward(f Forward) {
	seen := map[resolve.Server]bool{}
	for i, s := range f.Upstreams {
		key := fmt.Sprintf("forward.upstreams[%d]", i)
		server, ok := v.server(key, s)
		v.need(!ok || !seen[server], key, "is listed twice")
		seen[server] = true
	}
	v.networks("forward.clients", f.Clients)
	v.need(len(f.Clients) == 0 || len(f.Upstreams) > 0, "forward.clients", "requires forward.upstreams")
	for i, s := range f.Clients {
		p, err := parseNetwork(s)
		v.need(err != nil || p.Bits() > 0 || f.OpenResolver, fmt.Sprintf("forward.clients[%d]", i),
			"lets the whole internet resolve names here and attack others with the answers: "+
				"list your own networks, or also set forward.open_resolver if that is intended")
	}
	v.need(64<<10 <= f.CacheSize && f.CacheSize <= 1<<40, "forward.cache_size", "must be from 64KiB to 1024GiB")
	v.within("forward.max_stale", f.MaxStale, 0, 7*24*time.Hour)
}
