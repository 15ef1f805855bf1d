package transfer

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Keyring finds TSIG keys. It reloads them when they have changed, so a deleted key is refused at once. A lookup takes
// the same time with ten thousand keys as with one. A Keyring also has the certificates for connections over TLS.
type Keyring struct {
	pub *publish.Publisher
	tls atomic.Pointer[tls.Config]

	mu      sync.Mutex // guards the rest
	read    bool
	version uint64
	names   map[dnsname.Name]Key
	zones   map[uuid.UUID]Key // keys for a single zone without limits
}

// NewKeyring returns a Keyring with the keys in a publisher's store.
func NewKeyring(pub *publish.Publisher) *Keyring {
	k := &Keyring{pub: pub}
	k.SetTLS(nil, nil)
	return k
}

// SetTLS sets the CAs of other servers that are queried over TLS, and the certificate for them. Without CAs, those of
// the system are used.
func (k *Keyring) SetTLS(roots *x509.CertPool, own []tls.Certificate) {
	k.tls.Store(&tls.Config{RootCAs: roots, Certificates: own, NextProtos: []string{"dot"},
		MinVersion: tls.VersionTLS13, // RFC 9103 §7.2
		// The second connection of a refresh, for the transfer, resumes the session of the first.
		ClientSessionCache: tls.NewLRUClientSessionCache(0)})
}

// tlsFor returns the TLS configuration of a server; nil if it is queried without TLS.
func (k *Keyring) tlsFor(r Remote) *tls.Config {
	if !r.TLS {
		return nil
	}
	c := k.tls.Load().Clone()
	c.ServerName = cmp.Or(r.Name, r.Addr().WithZone("").String())
	return c
}

// Find returns the key of a name, and whether there is one.
func (k *Keyring) Find(name dnsname.Name) (Key, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.refreshLocked()
	key, ok := k.names[name]
	return key, ok && err == nil, err
}

// forZone returns the key of a single zone, which signs queries to its masters; the zero Key if there is none. Keys of
// a pool are for its secondaries.
func (k *Keyring) forZone(id uuid.UUID) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.refreshLocked()
	return k.zones[id], err
}

func (k *Keyring) refreshLocked() error {
	now := k.pub.ObjectVersion(store.KindTSIGKey) // before reading the keys, so that no change in between is missed
	if k.read && now == k.version {
		return nil
	}
	var keys []Key
	err := k.pub.View(func(v store.View) (err error) { keys, err = readKeys(v); return err })
	if err != nil {
		return err
	}
	k.read, k.version, k.names, k.zones = true, now, map[dnsname.Name]Key{}, map[uuid.UUID]Key{}
	for _, key := range keys {
		k.names[key.Name] = key
		if key.zone != uuid.Nil && !key.limited() {
			k.zones[key.zone] = key
		}
	}
	return nil
}
