package designate

import (
	"strings"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// abandon takes a zone out of the server's care. Designate leaves it on the servers of its pool; here the server is the
// pool, so it is not served any more.
func (c *call) abandon() (reply, error) {
	var z zone.Zone
	err := c.view(func(v store.View) (err error) {
		z, err = c.ownZone(v)
		return err
	})
	if err != nil {
		return reply{}, err
	}
	err = c.commitSized(z.Sets, func(tx *publish.Tx) error {
		z, shared, err := c.ownZoneShared(tx.View)
		if err != nil {
			return err
		}
		if err := c.mayDelete(tx.View, z, shared); err != nil {
			return err
		}
		return removeZone(tx, z.ID)
	})
	return noContent, err
}

// movePool would give a zone to other servers; there is one pool.
func (c *call) movePool() (reply, error) {
	err := c.view(func(v store.View) error {
		_, err := c.ownZone(v)
		return err
	})
	if err == nil {
		err = badRequest("There is one pool, %s, and the zone is in it.", c.settings.PoolID)
	}
	return reply{}, err
}

// floatingIP is an address with a name. The addresses are those of a network service, of which this server has none.
type floatingIP struct{}

var floatingListing = listing[floatingIP]{
	name: "floatingips",
	id:   func(floatingIP) string { return "" },
	keys: []string{"id"},
}

func (c *call) listFloatingIPs() (reply, error) {
	q, err := floatingListing.query(c)
	if err != nil {
		return reply{}, err
	}
	p, err := floatingListing.cut(nil, q)
	return floatingListing.reply(c, q, p, func(f floatingIP) any { return f }), err
}

// showFloatingIP and a change of one find nothing; an id that is none is refused.
func (c *call) showFloatingIP() (reply, error) {
	region, id, colon := strings.Cut(c.r.PathValue("id"), ":")
	if _, err := parseID(id); !colon || region == "" || err != nil {
		return reply{}, badRequest("Floating IP %q is not in the form region:uuid", c.r.PathValue("id"))
	}
	return reply{}, notFound("floatingip", "FloatingIP; there is no network service behind this server")
}

func (c *call) updateFloatingIP() (reply, error) {
	if _, err := c.input("floatingip", "ptrdname", "description", "ttl"); err != nil {
		return reply{}, err
	}
	return c.showFloatingIP()
}
