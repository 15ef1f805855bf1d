package transfer

import (
	"sync"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Keyring finds TSIG keys. It reads them again when they have changed: a key that was deleted is no key from that moment on,
// and one of ten thousand is found as fast as one of one.
type Keyring struct {
	pub *publish.Publisher

	mu      sync.Mutex // guards the rest
	read    bool
	version uint64
	names   map[dnsname.Name]Key
	zones   map[uuid.UUID]Key // those that are for one zone
}

// NewKeyring returns the keys of a publisher's store.
func NewKeyring(pub *publish.Publisher) *Keyring { return &Keyring{pub: pub} }

// Find returns the key of this name, and whether there is one.
func (k *Keyring) Find(name dnsname.Name) (Key, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.refreshLocked()
	key, ok := k.names[name]
	return key, ok && err == nil, err
}

// forZone returns the key that was made for one zone, with which its masters are asked; the zero Key when there is none. Keys
// of a pool are for its secondaries.
func (k *Keyring) forZone(id uuid.UUID) (Key, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.refreshLocked()
	return k.zones[id], err
}

func (k *Keyring) refreshLocked() error {
	now := k.pub.ObjectVersion(store.KindTSIGKey) // before they are read, so that what comes in between is not missed
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
