package publish

import (
	"sync"
	"sync/atomic"

	"github.com/nameplane/nameplane/internal/store"
)

// versions counts, for each kind of object, the commits that wrote such objects.
type versions struct{ kinds sync.Map } // maps store.Kind to *atomic.Uint64

func (v *versions) of(kind store.Kind) *atomic.Uint64 {
	n, ok := v.kinds.Load(kind)
	if !ok {
		n, _ = v.kinds.LoadOrStore(kind, new(atomic.Uint64))
	}
	return n.(*atomic.Uint64)
}

// ObjectVersion returns a number that grows with every commit that writes objects of a kind. It grows before Commit
// returns. A cache that is built from objects reads the version first and then the objects; it is valid while the
// version is the same.
func (p *Publisher) ObjectVersion(kind store.Kind) uint64 { return p.versions.of(kind).Load() }
