package designate

import "strings"

// movePool would give a zone to other servers; there is one pool.
func (c *call) movePool() (reply, error) {
	_, err := viewed(c, c.ownZone)
	if err == nil {
		err = badRequest("There is one pool, %s, and the zone is in it.", poolID)
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
	return listFixed(c, floatingListing)
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
