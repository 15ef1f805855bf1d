package publish

import (
	"sync"
	"sync/atomic"

	"github.com/nameplane/nameplane/internal/store"
)

// versions counts, for each kind of object, the commits that wrote some.
type versions struct{ kinds sync.Map } // store.Kind to *atomic.Uint64

func (v *versions) of(kind store.Kind) *atomic.Uint64 {
	n, ok := v.kinds.Load(kind)
	if !ok {
		n, _ = v.kinds.LoadOrStore(kind, new(atomic.Uint64))
	}
	return n.(*atomic.Uint64)
}

// ObjectVersion grows with every commit that writes objects of a kind, before Commit returns. Who keeps what it made of them
// reads it first, then the objects, and need not read them again while it is the same.
func (p *Publisher) ObjectVersion(kind store.Kind) uint64 { return p.versions.of(kind).Load() }
