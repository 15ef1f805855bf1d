package designate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// pool is a pool of name servers. The default pool is built from the settings; administrators create the others.
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

// servers returns the name servers of the pool, the one with the lowest priority first.
func (p pool) servers() []dnsname.Name {
	records := slices.Clone(p.NSRecords)
	slices.SortStableFunc(records, func(a, b nsRecord) int { return a.Priority - b.Priority })
	out := make([]dnsname.Name, 0, len(records))
	for _, r := range records {
		if n, err := dnsname.Parse(r.Hostname); err == nil { // readNSRecords has checked it
			out = append(out, n)
		}
	}
	return out
}

// The lengths are Designate's. Its NS records have no bound; a set of 20 is the default quota for a record set.
const maxPoolName, maxNSRecords, maxPriority = 50, 20, 10_000

var poolKeys = []string{"name", "description", "attributes", "ns_records"}

// pools are the pools in the store.
var pools = resource[pool, *pool]{
	kind: store.KindPool, title: "Pool", path: "/v2/pools", keys: poolKeys, read: readPool,
	same: func(a, b pool) bool { return a.Name == b.Name },
	present: func(c *call, p *pool) {
		if !c.scope.caller.IsAdmin() {
			p.ProjectID = nil // tenants choose a pool by its attributes; whose it is does not concern them
		}
	},
	listing: newListing("pools", map[string]func(pool) string{
		"name": func(p pool) string { return p.Name },
	}, "name"),
}

// defaultPool returns the pool of the settings.
func (s *Settings) defaultPool() pool {
	p := pool{resourceMeta: resourceMeta{ID: zone.DefaultPool.String()}, Name: "default",
		Attributes: map[string]string{}, NSRecords: []nsRecord{}}
	for _, n := range s.Nameservers {
		p.NSRecords = append(p.NSRecords, nsRecord{n.Hostname.String(), n.Priority})
	}
	return p
}

// poolByID returns a pool, or 404.
func (c *call) poolByID(v store.View, id uuid.UUID) (pool, error) {
	if id == zone.DefaultPool {
		return c.settings.defaultPool(), nil
	}
	var p pool
	err := v.Object(store.KindPool, id.String(), &p)
	if errors.Is(err, store.ErrNotFound) {
		err = notFound("pool", "Pool")
	}
	return p, err
}

func (c *call) listPools() (reply, error) {
	return pools.listing.list(c, func(v store.View) ([]pool, error) {
		others, err := store.ObjectsOf[pool](v, store.KindPool)
		return append([]pool{c.settings.defaultPool()}, others...), err
	}, pools.link)
}

func (c *call) showPool() (reply, error) {
	p, err := viewed(c, c.pathPool)
	return ok(pools.link(c, p)), err
}

// pathPool returns the pool of the path.
func (c *call) pathPool(v store.View) (pool, error) {
	id, err := c.id("id")
	if err != nil {
		return pool{}, err
	}
	return c.poolByID(v, id)
}

func (c *call) createPool() (reply, error) {
	in, err := c.input("pool", poolKeys...)
	if err != nil {
		return reply{}, err
	}
	apply := readPool(in, true)
	if in.err() != nil {
		return reply{}, in.err()
	}
	p := pool{ProjectID: &c.scope.project, Attributes: map[string]string{}}
	apply(&p)
	err = c.commit(func(tx *publish.Tx) error {
		p.resourceMeta = newMeta(tx)
		return c.putPool(tx, p)
	})
	return pools.created(c, http.StatusCreated, p), err
}

// putPool writes a pool. The name of the default pool is taken too.
func (c *call) putPool(tx *publish.Tx, p pool) error {
	if pools.same(p, c.settings.defaultPool()) {
		return duplicate("pool", "Duplicate Pool")
	}
	return pools.put(tx, p)
}

// updatePool changes a pool. New name servers reach the zones of the pool after the reply, which is 202 as in
// Designate: see syncPools.
func (c *call) updatePool() (reply, error) {
	in, err := c.anyInput("pool")
	if err != nil {
		return reply{}, err
	}
	apply := readPool(in, false)
	if in.err() != nil {
		return reply{}, in.err()
	}
	rest := in.repeated(poolKeys...)
	var p pool
	err = c.commit(func(tx *publish.Tx) error {
		if p, err = c.changeablePool(tx.View); err != nil {
			return err
		}
		if err := rest.check(func() any { return pools.link(c, p) }); err != nil {
			return err
		}
		before := p.servers()
		apply(&p)
		p.UpdatedAt = timestamp(tx.Now())
		if err := c.putPool(tx, p); err != nil || slices.Equal(before, p.servers()) {
			return err
		}
		due, err := dueAfter(tx.View, p.ID, before)
		if err != nil {
			return err
		}
		return tx.PutObject(store.KindPoolDue, p.ID, due)
	})
	if err == nil {
		c.api.wakePools()
	}
	return reply{status: http.StatusAccepted, body: pools.link(c, p)}, err
}

// changeablePool returns the pool of the path, unless it is the default pool.
func (c *call) changeablePool(v store.View) (pool, error) {
	p, err := c.pathPool(v)
	if err == nil && p.ID == zone.DefaultPool.String() {
		err = refuse("invalid_operation", "The default pool is described by the configuration of the server "+
			"(designate.nameservers); it cannot be changed or deleted here")
	}
	return p, err
}

func (c *call) deletePool() (reply, error) {
	err := c.commit(func(tx *publish.Tx) error {
		p, err := c.changeablePool(tx.View)
		if err != nil {
			return err
		}
		zones, _, err := tx.ZonesIn(uuid.MustParse(p.ID), "", 1)
		if err != nil {
			return err
		}
		if len(zones) > 0 {
			return refuse("invalid_operation", "pool must not contain zones")
		}
		if err := forget(tx, store.KindPoolDue, p.ID); err != nil {
			return err
		}
		return pools.drop(tx, p)
	})
	return noContent, err
}

// readPool reads the body of a create or an update. A pool without a name server is refused: no zone could use it.
func readPool(in *input, isNew bool) func(*pool) {
	for _, key := range []string{"name", "ns_records"} {
		if isNew || in.has(key) {
			in.require(key)
		}
	}
	name := in.text("name", maxPoolName)
	if name != nil && *name == "" {
		in.note("name", "'' is too short", "minLength", 1)
	}
	describes, description := in.has("description"), in.text("description", maxDescription)
	attributes, servers := in.dictionary("attributes"), readNSRecords(in)
	return func(p *pool) {
		if name != nil {
			p.Name = *name
		}
		if describes {
			p.Description = description
		}
		if attributes != nil {
			p.Attributes = attributes
		}
		if servers != nil {
			p.NSRecords = servers
		}
	}
}

func readNSRecords(in *input) []nsRecord {
	var raw []json.RawMessage
	if !in.get("ns_records", "array", &raw) {
		return nil
	}
	if len(raw) == 0 {
		in.note("ns_records", "[] is too short: a pool has at least one name server", "minItems", 1)
	}
	if len(raw) > maxNSRecords {
		in.note("ns_records", fmt.Sprintf("%d name servers are too many", len(raw)), "maxItems", maxNSRecords)
		return nil
	}
	out, seen := make([]nsRecord, 0, len(raw)), map[dnsname.Name]bool{}
	for i, r := range raw {
		item := &input{resource: "ns_record", path: append(slices.Clone(in.path), "ns_records", i)}
		if json.Unmarshal(r, &item.fields) != nil || item.fields == nil {
			in.noteItem("ns_records", i, short(r)+" is not of type 'object'", "type", "object")
			continue
		}
		rec, host := readNSRecord(item)
		if seen[host] && !host.IsZero() {
			item.note("hostname", fmt.Sprintf("'%s' is listed twice", rec.Hostname), "uniqueItems", true)
		}
		seen[host] = true
		out = append(out, rec)
		in.problems = append(in.problems, item.problems...)
	}
	return out
}

func readNSRecord(in *input) (nsRecord, dnsname.Name) {
	if f, ok := errors.AsType[*fault](in.known("hostname", "priority")); ok {
		in.problems = append(in.problems, problem{in.path, f.message, "additionalProperties", false})
	}
	in.require("hostname", "priority")
	host, spelling := in.hostname("hostname", false)
	rec := nsRecord{Hostname: cmp.Or(spelling, host.String())}
	if n := in.number("priority", 1, maxPriority); n != nil {
		rec.Priority = int(*n)
	}
	return rec, host
}
