package publish

import (
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/zone"
)

// ReplaceSets calls ReplaceSorted with sets in any order.
func (tx *Tx) ReplaceSets(zoneID uuid.UUID, sets []zone.RecordSet) error {
	sets = slices.Clone(sets)
	for i, s := range sets {
		sets[i].Data = rr.Normal(s.Type, s.Data)
	}
	slices.SortFunc(sets, func(a, b zone.RecordSet) int {
		return cmp.Or(a.Name.Compare(b.Name), cmp.Compare(a.Type, b.Type))
	})
	return tx.ReplaceSorted(zoneID, len(sets), slices.Values(sets))
}
