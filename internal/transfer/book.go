package transfer

import (
	"sync"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Book finds keys. It reads them again when they have changed: a key that was deleted is no key from that moment on, and one
// of ten thousand is found as fast as one of one.
type Book struct {
	pub *publish.Publisher

	mu      sync.Mutex // guards the rest
	read    bool
	version uint64
	names   map[dnsname.Name]Key
	zones   map[uuid.UUID]Key // those that are for one zone
}

// NewBook has the keys of a publisher's store.
func NewBook(pub *publish.Publisher) *Book { return &Book{pub: pub} }

// Find is the key of this name.
func (b *Book) Find(name dnsname.Name) (Key, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.refreshLocked()
	k, ok := b.names[name]
	return k, ok && err == nil, err
}

// forZone is the key that was made for one zone, with which its masters are asked; the zero Key when there is none. Keys of a pool
// are for its secondaries.
func (b *Book) forZone(id uuid.UUID) (Key, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.refreshLocked()
	return b.zones[id], err
}

func (b *Book) refreshLocked() error {
	now := b.pub.ObjectVersion(store.KindTSIGKey) // before they are read, so that what comes in between is not missed
	if b.read && now == b.version {
		return nil
	}
	var keys []Key
	err := b.pub.View(func(v store.View) (err error) { keys, err = readKeys(v); return err })
	if err != nil {
		return err
	}
	b.read, b.version, b.names, b.zones = true, now, map[dnsname.Name]Key{}, map[uuid.UUID]Key{}
	for _, k := range keys {
		b.names[k.Name] = k
		if k.zone != uuid.Nil {
			b.zones[k.zone] = k
		}
	}
	return nil
}
