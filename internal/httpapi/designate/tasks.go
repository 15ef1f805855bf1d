package designate

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
)

// movePool moves a zone to another pool. The name servers of that pool replace those of its own.
// Without pool_id the attributes of the zone select the pool, as for a new zone.
func (c *call) movePool() (reply, error) {
	in, err := c.input("pool_move", "pool_id")
	if err != nil {
		return reply{}, err
	}
	id := in.poolID()
	if in.err() != nil {
		return reply{}, in.err()
	}
	err = c.commit(func(tx *publish.Tx) error {
		tx.Note("move to another pool")
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		from, err := c.poolByID(tx.View, z.Pool)
		if err != nil {
			return err
		}
		to, err := c.selectPool(tx.View, z.Attributes)
		if id != uuid.Nil {
			to, err = c.poolByID(tx.View, id)
		}
		if err != nil {
			return err
		}
		if to.ID == from.ID {
			return badRequest("The zone is in the target pool already; name another pool")
		}
		due, err := dueAfter(tx.View, from.ID, from.servers())
		if err != nil {
			return err
		}
		z.Pool = uuid.MustParse(to.ID)
		if _, err := tx.UpdateZone(z); err != nil {
			return err
		}
		return setServers(tx, z, due, to.servers())
	})
	return reply{status: http.StatusAccepted}, err
}

// floatingIP would be an address with a PTR record. The addresses come from a network service (Neutron), and this
// server has none: lists are empty, so that clients that always read them work.
type floatingIP struct{}

var floatingListing = listing[floatingIP]{
	name: "floatingips",
	id:   func(floatingIP) string { return "" },
	keys: []string{"id"},
}

func (c *call) listFloatingIPs() (reply, error) {
	return listFixed(c, floatingListing)
}

// regionName matches the name of a region. Its length is checked without the expression: a counted repetition takes a
// hundred kilobytes from the start on.
var regionName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const maxRegionName = 100

// showFloatingIP returns 404 for every valid key and 400 for an invalid one. Updates do the same. The texts are
// Designate's.
func (c *call) showFloatingIP() (reply, error) {
	key := c.r.PathValue("id")
	region, id, _ := strings.Cut(key, ":")
	if len(region) > maxRegionName || !regionName.MatchString(region) || len(id) != 36 || uuid.Validate(id) != nil {
		return reply{}, badRequest("Floating IP %s is not in the format of <region>:<uuid>", key)
	}
	return reply{}, &fault{status: http.StatusNotFound, kind: "not_found", message: fmt.Sprintf(
		"FloatingIP %s in %s is not associated for project %q", id, region, c.scope.project)}
}

func (c *call) updateFloatingIP() (reply, error) {
	if _, err := c.input("floatingip", "ptrdname", "description", "ttl"); err != nil {
		return reply{}, err
	}
	return c.showFloatingIP()
}
