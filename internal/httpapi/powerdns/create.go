package powerdns

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// createZone creates a zone. When the client gives no name servers, the zone gets those of this server. PowerDNS
// creates it without any; such a zone could not be served here.
func (c *call) createZone() (reply, error) {
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	name, kind, err := c.readNewZone(o)
	if err != nil {
		return reply{}, err
	}
	z := c.rules.NewZone(name, kind)
	var given newSets
	err = httpapi.WithMemory(c.r.Context(), func() (err error) {
		if given, err = c.readNewSets(o, z); err != nil {
			given = newSets{} // a request that waits for memory holds no data
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	s := newSettings()
	if err := c.applySettings(o, &z, &s); err != nil {
		return reply{}, err
	}
	// applySettings checks masters only if the body has them, because an update may leave them out.
	if kind == zone.Secondary && len(z.Masters) == 0 {
		return reply{}, refuse("A zone of kind Slave needs masters")
	}
	err = c.commitSized(len(given.list), func(tx *publish.Tx) (err error) {
		tx.Note("create zone")
		if err := c.rules.CheckCreate(tx.View, z); err != nil {
			return err
		}
		first, err := c.rules.SelectPool(tx.View, &z)
		if err != nil {
			return err
		}
		sets := given.complete(&z, first)
		if err := tx.CheckSize(z, len(sets), given.records()); err != nil {
			return err
		}
		for _, set := range sets {
			if err := c.rules.CheckLocation(tx.View, z, set.Name, set.Type); err != nil {
				return err
			}
		}
		if z, err = tx.CreateZone(z, sets...); err != nil {
			return err
		}
		return putSettings(tx, z.ID, s)
	})
	if errors.Is(err, store.ErrExists) {
		err = status(http.StatusConflict)
	}
	if err != nil {
		return reply{}, err
	}
	if kind == zone.Secondary {
		c.api.Zones.Peers.Refresh(z.ID, false)
	}
	return c.zoneReply(http.StatusCreated, z)
}

// readNewZone reads the name and the kind of a new zone. It refuses an existing name first, as PowerDNS does: clients
// read 409 as "it exists already", whatever else is in the request.
func (c *call) readNewZone(o object) (name dnsname.Name, kind zone.Kind, err error) {
	text, err := o.text("name")
	if err != nil {
		return name, kind, err
	}
	if name, err = parseName(text); err != nil {
		return name, kind, err
	}
	err = c.view(func(v store.View) error {
		_, err := v.ZoneByName(name)
		switch {
		case err == nil:
			return status(http.StatusConflict)
		case errors.Is(err, store.ErrNotFound):
			return nil
		}
		return err
	})
	if err != nil {
		return name, kind, err
	}
	if text, err = o.text("kind"); err != nil {
		return name, kind, err
	}
	kind, _, err = readKind(text)
	return name, kind, err
}

// newSets are the record sets of a request that creates a zone or replaces its content.
type newSets struct {
	list  []change
	index map[store.SetRef]int
}

// add adds a set, or its records to a set of the same name and type.
func (n *newSets) add(ch change) {
	ref := store.SetRef{Name: ch.name, Type: ch.typ}
	if i, ok := n.index[ref]; ok {
		// PowerDNS joins sets with the same name and type.
		n.list[i].data = append(n.list[i].data, ch.data...)
		if ch.comments {
			n.list[i].comment = ch.comment
		}
		return
	}
	if n.index == nil {
		n.index = map[store.SetRef]int{}
	}
	n.index[ref] = len(n.list)
	n.list = append(n.list, ch)
}

func (n *newSets) has(name dnsname.Name, t rr.Type) bool {
	_, ok := n.index[store.SetRef{Name: name, Type: t}]
	return ok
}

// readNewSets reads the record sets of a new zone from its three forms: record sets, a zone file, and name servers.
func (c *call) readNewSets(o object, z zone.Zone) (n newSets, err error) {
	text, _ := o.optionalText("zone")
	_, isList := o.list("rrsets")
	if isList && text != "" {
		// Both forms could define the same set with different records, and no order between them is right.
		return n, refuse("You cannot give rrsets AND zone data as text")
	}
	_, servers := o.list("nameservers")
	if o["nameservers"] != nil && !servers && z.Kind != zone.Secondary {
		return n, refuse("Nameservers is not a list")
	}
	if n, err = c.readSets(o); err != nil {
		return n, err
	}
	if text != "" {
		if err := c.readZoneText(&n, z, text); err != nil {
			return n, err
		}
	}
	if err := n.addServers(o, z); err != nil {
		return n, err
	}
	// The first transfer would delete these records, so the client must not believe that they are stored.
	if z.Kind == zone.Secondary && len(n.list) > 0 {
		return n, refuse("Zone '%s' is of kind Slave: its records are changed at its masters", z.Name)
	}
	return n, n.check(z.Name)
}

// readSets reads the member rrsets. A set without records is left out.
func (c *call) readSets(o object) (n newSets, err error) {
	list, _ := o.list("rrsets")
	for _, v := range list {
		ch, err := readOwner(asObject(v))
		if err == nil {
			err = c.readRecords(asObject(v), &ch, true)
		}
		if err == nil {
			err = ch.readComment(asObject(v))
		}
		if err != nil {
			return n, err
		}
		switch {
		case len(ch.data) > 0:
			n.add(ch)
		// A comment is the description of a set, and a set without records is not stored.
		case ch.comment != nil:
			return n, ch.refuse(": a comment needs records")
		}
	}
	return n, nil
}

// readZoneText reads the member zone: a zone file, which may leave out its SOA and NS records. A line with $GENERATE
// can produce 20,000 records of 2 KiB, so readZoneText checks the quotas, and calls httpapi.Need, for every record. It
// takes a turn of the project: it can use a processor for a second.
func (c *call) readZoneText(n *newSets, z zone.Zone, text string) error {
	opts := zonefile.Options{Origin: z.Name, DefaultTTL: z.TTL}
	quotas, err := c.rules.ZoneQuotas()
	if err != nil {
		return err
	}
	if err := httpapi.TakeTurn(c.r.Context()); err != nil {
		return err
	}
	count, bytes := 0, 0
	var memory error
	err = zonefile.Parse(strings.NewReader(text), opts, func(r zonefile.Record) error {
		// A zone file from AXFR has the SOA record twice: first and last (RFC 5936 §2.2).
		if r.Type == rr.TypeSOA && n.has(r.Name, r.Type) {
			return nil
		}
		if !n.has(r.Name, r.Type) {
			bytes += len(r.Name.Wire())
		}
		bytes += len(r.Data)
		if count++; quotas.ZoneRecords >= 0 && count > quotas.ZoneRecords {
			return &publish.QuotaError{Resource: "zone_records", N: count, Most: quotas.ZoneRecords}
		}
		if most := quotas.ZoneBytes(); most >= 0 && bytes > most {
			return &publish.QuotaError{Resource: "bytes of a zone", N: bytes, Most: most}
		}
		if memory = httpapi.Need(c.r.Context(), budget.ZoneBytes(count, int64(bytes))); memory != nil {
			return memory
		}
		n.add(change{name: r.Name, text: r.Name.String(), typ: r.Type, ttl: r.TTL, data: []string{r.Data}, records: true})
		return c.rules.CheckTTL(r.TTL)
	})
	switch {
	case memory != nil:
		return memory
	case err != nil:
		return refuse("An error occurred while parsing the zonedata: %s", err)
	}
	return nil
}

// addServers reads the member nameservers into the NS set of the zone.
func (n *newSets) addServers(o object, z zone.Zone) error {
	list, _ := o.list("nameservers")
	mixed := n.has(z.Name, rr.TypeNS)
	for _, v := range list {
		s, _ := v.(string)
		if s == "" {
			return refuse("Nameservers must be non-empty strings")
		}
		if !strings.HasSuffix(s, ".") {
			return refuse("Nameserver is not canonical: '%s'", s)
		}
		server, err := dnsname.Parse(s)
		if err != nil {
			return refuse("Unable to parse DNS Name for NS '%s'", s)
		}
		// The names of both lists would be one NS set with two TTLs.
		if mixed {
			return refuse("Nameservers list MUST NOT be mixed with zone-level NS in rrsets")
		}
		n.add(change{name: z.Name, text: z.Name.String(), typ: rr.TypeNS, ttl: z.TTL, data: []string{server.Wire()},
			records: true})
	}
	return nil
}

// check checks the sets by themselves, and whether they can exist beside each other.
func (n *newSets) check(apex dnsname.Name) error {
	types := map[dnsname.Name][]rr.Type{}
	for i := range n.list {
		ch := &n.list[i]
		if err := ch.check(apex); err != nil {
			return err
		}
		types[ch.name] = append(types[ch.name], ch.typ)
	}
	for name, list := range types {
		if len(list) < 2 || !slices.Contains(list, rr.TypeCNAME) {
			continue
		}
		// The order of a map is random. A message must be the same each time.
		slices.Sort(list)
		i := max(1, slices.Index(list, rr.TypeCNAME)) // PowerDNS names the second type of the first pair
		return refuse("RRset %s IN %s: Conflicts with another RRset", name, list[i])
	}
	return nil
}

// sets returns the record sets as rows.
func (n *newSets) sets() []zone.RecordSet {
	out := make([]zone.RecordSet, 0, len(n.list))
	for _, ch := range n.list {
		out = append(out, zone.RecordSet{Name: ch.name, Type: ch.typ, TTL: &ch.ttl, Data: ch.data,
			Description: ch.comment, Managed: ch.typ == rr.TypeSOA})
	}
	return out
}

// records returns the number of records of all sets.
func (n *newSets) records() (out int) {
	for i := range n.list {
		out += len(n.list[i].data)
	}
	return out
}

// complete returns the sets of a new zone. SOA and NS sets that the client does not give are those of this server; the
// first name server that it gives is the primary server in the SOA record.
func (n *newSets) complete(z *zone.Zone, first []zone.RecordSet) []zone.RecordSet {
	sets := n.sets()
	for _, s := range first {
		if n.has(s.Name, s.Type) {
			continue
		}
		if soa, ok := zone.ParseSOA(s.Data[0]); ok && s.Type == rr.TypeSOA && n.has(z.Name, rr.TypeNS) {
			ns := n.list[n.index[store.SetRef{Name: z.Name, Type: rr.TypeNS}]]
			if server, ok := rr.Target(rr.TypeNS, ns.data[0]); ok {
				soa.MName = server
				s.Data = []string{soa.Data()}
			}
		}
		sets = append(sets, s)
	}
	for _, s := range sets {
		if soa, ok := zone.ParseSOA(s.Data[0]); ok && s.Type == rr.TypeSOA && !soa.RName.IsRoot() {
			z.Email = emailOf(soa)
		}
	}
	return sets
}

// updateZone changes the settings of a zone, and replaces all its record sets if the body has some.
func (c *call) updateZone() (reply, error) {
	z, err := c.viewZone(c.ownZone)
	if err != nil {
		return reply{}, err
	}
	o, err := c.body()
	if err != nil {
		return reply{}, err
	}
	_, replace := o.list("rrsets")
	var n newSets
	if replace {
		if n, err = c.readReplacement(o, z); err != nil {
			return reply{}, err
		}
	}
	// A replacement may delete every set that the zone has now, so these count too.
	err = c.commitSized(len(n.list)+z.Sets, func(tx *publish.Tx) error {
		tx.Note("update zone")
		z, err := c.ownZone(tx.View)
		if err != nil {
			return err
		}
		if err := c.ifMatch(tx.View, z); err != nil {
			return err
		}
		s, err := settingsOf(tx.View, z.ID)
		if err != nil {
			return err
		}
		if err := c.applySettings(o, &z, &s); err != nil {
			return err
		}
		if z, err = tx.UpdateZone(z); err != nil {
			return err
		}
		if err := putSettings(tx, z.ID, s); err != nil || !replace {
			return err
		}
		return c.replaceSets(tx, z, &n)
	})
	if err != nil {
		return reply{}, err
	}
	if z.Kind == zone.Secondary {
		c.api.Zones.Peers.Refresh(z.ID, false)
	}
	return noContent, nil
}

// readReplacement reads the record sets that replace the content of a zone.
func (c *call) readReplacement(o object, z zone.Zone) (newSets, error) {
	n, err := c.readSets(o)
	switch {
	case err != nil:
		return n, err
	case z.Kind != zone.Primary:
		return n, refuse("Zone '%s' is of kind Slave: its records are changed at its masters", z.Name)
	}
	for i := range n.list {
		if !n.list[i].name.IsIn(z.Name) {
			return n, n.list[i].refuse(": Name is out of zone")
		}
	}
	// PowerDNS 4.8 has the same rule: without a SOA record the replaced zone could not be served.
	if !n.has(z.Name, rr.TypeSOA) {
		return n, refuse("Must give SOA record for zone when replacing all RR sets")
	}
	return n, n.check(z.Name)
}

// replaceSets makes the given sets the content of a zone. Sets that are equal keep their ids. Without NS records in the
// request those of the zone stay, because a zone cannot be served without them.
func (c *call) replaceSets(tx *publish.Tx, z zone.Zone, n *newSets) error {
	if err := tx.CheckSize(z, len(n.list), n.records()); err != nil {
		return err
	}
	var gone []change
	err := tx.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
		// Hidden sets are the addresses of an ALIAS. The follower writes them; clients never see them.
		keep := s.Hidden || n.has(s.Name, s.Type) || s.Name == z.Name && s.Type == rr.TypeNS
		if !keep {
			gone = append(gone, change{name: s.Name, typ: s.Type})
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	// Delete first: a CNAME can replace other types of the same name only after these are gone.
	for _, ch := range gone {
		if err := deleteSet(tx, z, ch); err != nil {
			return err
		}
	}
	for _, s := range n.sets() {
		if err := c.rules.CheckLocation(tx.View, z, s.Name, s.Type); err != nil {
			return err
		}
		was, err := tx.RecordSet(z.ID, s.Name, s.Type)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		s.Zone = z.ID
		if err := c.putSet(tx, z, s, err == nil && !was.Hidden); err != nil {
			return err
		}
	}
	return nil
}
