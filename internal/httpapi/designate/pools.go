package designate

// pool is a pool of name servers. This server has one pool, built from the settings. It is served because clients of
// Designate read it.
type pool struct {
	resourceMeta
	ProjectID   *string           `json:"project_id"`
	Name        string            `json:"name"`
	Description *string           `json:"description"`
	Attributes  map[string]string `json:"attributes"`
	NSRecords   []nsRecord        `json:"ns_records"`
}

// nsRecord is a name server of a pool.
type nsRecord struct {
	Hostname string `json:"hostname"`
	Priority int    `json:"priority"`
}

func (c *call) pool() pool {
	p := pool{resourceMeta: resourceMeta{ID: poolID.String()}, Name: "default",
		Attributes: map[string]string{}, NSRecords: c.nsRecords()}
	p.Links = &links{Self: c.url("/v2/pools/" + p.ID)}
	return p
}

func (c *call) nsRecords() []nsRecord {
	out := []nsRecord{}
	for _, n := range c.settings.Nameservers {
		out = append(out, nsRecord{n.Hostname.String(), n.Priority})
	}
	return out
}

var poolListing = newListing("pools", map[string]func(pool) string{
	"name": func(p pool) string { return p.Name },
}, "name")

func (c *call) listPools() (reply, error) {
	return listFixed(c, poolListing, c.pool())
}

func (c *call) showPool() (reply, error) {
	id, err := c.id("id")
	if err == nil && id != poolID {
		err = notFound("pool", "Pool")
	}
	return ok(c.pool()), err
}
