package designate

import "strings"

// movePool always fails: in Designate it moves a zone to the servers of another pool, and this server has one pool.
func (c *call) movePool() (reply, error) {
	_, err := viewed(c, c.ownZone)
	if err == nil {
		err = badRequest("There is one pool, %s, and the zone is in it.", poolID)
	}
	return reply{}, err
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

// showFloatingIP returns 404 for every valid id and 400 for an invalid one. Updates do the same.
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
