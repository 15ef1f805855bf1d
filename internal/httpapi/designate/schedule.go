package designate

import (
	"maps"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// poolAttribute is the attribute by which a zone names its pool, as in Designate.
const poolAttribute = "pool_id"

// schedule returns the pool of a new zone: the one that the zone names in its pool or in an attribute, or the one that
// its attributes select. Only administrators may name a pool that the attributes do not select, as in the policy
// zone_create_forced_pool of Designate.
func (c *call) schedule(v store.View, z zone.Zone) (pool, error) {
	selected, err := c.selectPool(v, z.Attributes)
	if err != nil {
		return pool{}, err
	}
	id := z.Pool
	if text, ok := z.Attributes[poolAttribute]; ok {
		if id, err = uuid.Parse(text); err != nil {
			return pool{}, notFound("pool", "Pool")
		}
	}
	if id == uuid.Nil {
		return selected, nil
	}
	named, err := c.poolByID(v, id)
	if err == nil && named.ID != selected.ID && !c.scope.caller.IsAdmin() {
		err = forbidden("Only administrators may name the pool of a zone; attributes can select one.")
	}
	return named, err
}

// selectPool returns the oldest pool that has all attributes of a zone, with equal values. Without attributes, and when
// no pool has them, it is the default pool. Designate has filters for each of these steps, which its operator chooses.
func (c *call) selectPool(v store.View, attributes map[string]string) (pool, error) {
	wanted := maps.Clone(attributes)
	delete(wanted, poolAttribute)
	selected := c.settings.defaultPool()
	if len(wanted) == 0 {
		return selected, nil
	}
	err := store.EachOf(v, store.KindPool, "", func(_ string, p pool) (bool, error) { // IDs sort by age
		if p.hasAll(wanted) {
			selected = p
			return false, nil
		}
		return true, nil
	})
	return selected, err
}

func (p pool) hasAll(wanted map[string]string) bool {
	for key, value := range wanted {
		if have, ok := p.Attributes[key]; !ok || !sameAttribute(have, value) {
			return false
		}
	}
	return true
}

// sameAttribute reports whether two values are equal. Different words for true are equal, and for false, as in
// Designate.
func sameAttribute(a, b string) bool {
	return a == b || isTrue(a) && isTrue(b) || isFalse(a) && isFalse(b)
}

// isFalse reports whether s is one of the texts that Designate (oslo.utils) reads as false.
func isFalse(s string) bool {
	switch strings.ToLower(s) {
	case "false", "0", "no", "off", "f", "n":
		return true
	}
	return false
}
