package transfer

import (
	"sync"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Keyring finds TSIG keys. It reloads them when they have changed, so a deleted key is refused at once. A lookup takes
// the same time with ten thousand keys as with one.
type Keyring struct {
	pub *publish.Publisher

	mu      sync.Mutex // guards the rest
	read    bool
	version uint64
	names   map[dnsname.Name]Key
	zones   map[uuid.UUID]Key // keys for a single zone
}

// NewKeyring returns a Keyring with the keys in a publisher's store.
func NewKeyring(pub *publish.Publisher) *Keyring { return &Keyring{pub: pub} }

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
		if key.zone != uuid.Nil {
			k.zones[key.zone] = key
		}
	}
	return nil
}
