package designate

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// The filters and sort keys of record sets are Designate's.
var setFilters = []string{"name", "type", "ttl", "data", "status", "description"}

var zoneSetSorts = []string{"created_at", "id", "updated_at", "zone_id", "tenant_id", "name", "type", "ttl", "records"}
var allSetSorts = []string{"created_at", "updated_at", "zone_id", "tenant_id", "name", "type", "ttl"}

// smallList is the number of sets that are always read and sorted in memory: that takes a few milliseconds. Longer
// lists are read in an order that the store keeps, if it keeps the requested one.
const smallList = 2_000

func (c *call) listRecordSets() (reply, error) {
	q, err := c.list(setFilters, zoneSetSorts)
	if err != nil {
		return reply{}, err
	}
	return c.setPage(q, func(v store.View) ([]zone.Zone, error) {
		z, err := c.zone(v)
		return []zone.Zone{z}, err
	})
}

// listAllRecordSets lists the record sets of the caller's own zones, as Designate does. Those of zones that others
// share with the caller are listed by zone: otherwise any project could make this list slow, by sharing large zones.
func (c *call) listAllRecordSets() (reply, error) {
	q, err := c.list(setFilters, allSetSorts)
	if err != nil {
		return reply{}, err
	}
	return c.setPage(q, c.ownZones)
}

// setPage returns a page of the record sets of some zones.
func (c *call) setPage(q query, zones func(store.View) ([]zone.Zone, error)) (reply, error) {
	var l setList
	err := c.view(func(v store.View) error {
		in, err := zones(v)
		if err != nil {
			return err
		}
		l = newSetList(v, q, in)
		l.need, l.match.statusOf = c.need, c.statusOf
		l.isBehind = func(id uuid.UUID) bool { return len(c.behind(id)) > 0 }
		if err = l.read(); err != nil {
			l = setList{} // a request that waits for memory must not hold up to 2 MiB of record sets
		}
		return err
	})
	if err != nil {
		return reply{}, err
	}
	items := c.wireAll(l.page)
	for i, zs := range l.page {
		items[i].Links = c.setLinks(zs)
	}
	next := ""
	if l.more {
		next = items[len(items)-1].ID
	}
	return c.collection("recordsets", items, next, l.total), nil
}

// setList reads one page of record sets.
type setList struct {
	v      store.View
	q      query
	zones  map[uuid.UUID]zone.Zone
	order  []zone.Zone // the zones in the given order
	sets   int         // the number of sets in all zones
	match  setMatch
	sort   func(a, b zoneSet) int // nil: by age
	marker *zoneSet
	need   func(bytes int64) error // see call.need

	isBehind func(zone uuid.UUID) bool // reports whether a secondary lacks changes of a zone

	page   []zoneSet
	weight int // the bytes of page
	more   bool
	total  int
}

func newSetList(v store.View, q query, zones []zone.Zone) setList {
	l := setList{v: v, q: q, zones: map[uuid.UUID]zone.Zone{}, order: zones, match: newSetMatch(q.filters)}
	for _, z := range zones {
		l.zones[z.ID] = z
		l.sets += z.Sets
	}
	l.sort = setSorts[q.sortKey]
	if len(zones) == 1 && (q.sortKey == "zone_id" || q.sortKey == "tenant_id") {
		l.sort = nil // equal for all sets of one zone
	}
	return l
}

// read fills the page by the cheapest of three paths: in the order of age, in the order of names, or by reading and
// sorting all candidates.
func (l *setList) read() error {
	if err := l.findMarker(); err != nil {
		return err
	}
	if !l.match.any && l.q.count {
		l.total = l.sets
	}
	switch {
	case l.match.none:
		return nil
	case l.match.name != nil || l.match.below != nil || l.match.aliases || l.sets <= smallList:
	case l.match.any && l.q.count: // the total needs all matches
	case l.sort == nil:
		if err := l.readByAge(); !errors.Is(err, store.ErrTooManySkipped) {
			return err
		}
		l.page, l.weight, l.more = nil, 0, false
	case l.q.sortKey == "name" && len(l.order) == 1:
		return l.v.ZoneSetsByName(l.order[0].ID, l.markerSet(), l.q.desc, l.take)
	}
	return l.readSorted()
}

// findMarker reads the last set of the previous page.
func (l *setList) findMarker() error {
	if l.q.marker == "" {
		return nil
	}
	s, err := l.v.RecordSetByID(uuid.MustParse(l.q.marker))
	z, listed := l.zones[s.Zone]
	if errors.Is(err, store.ErrNotFound) || err == nil && (!listed || s.Hidden) {
		return markerNotFound(l.q.marker)
	}
	l.marker = &zoneSet{z, s}
	return err
}

func (l *setList) markerSet() *zone.RecordSet {
	if l.marker == nil {
		return nil
	}
	return &l.marker.set
}

// readByAge reads sets in the order of their creation, which is the order of their ids. It returns
// store.ErrTooManySkipped when sorting is faster: 4*l.sets is the bound, because skipping a set of another zone costs a
// fraction of reading one.
func (l *setList) readByAge() error {
	var after *uuid.UUID
	if l.marker != nil {
		after = &l.marker.set.ID
	}
	return l.v.RecordSetsByAge(l.zones, after, l.q.desc, 4*l.sets, l.take)
}

// take adds the next set of a walk in the requested order. It returns false when the page is full.
func (l *setList) take(s zone.RecordSet) (bool, error) {
	zs := zoneSet{l.zones[s.Zone], s}
	if !l.match.matches(zs.set) {
		return true, nil
	}
	l.weight += zs.weight()
	if len(l.page) == l.q.limit || len(l.page) > 0 && l.weight > maxPage {
		l.more = true
		return false, nil
	}
	l.page = append(l.page, zs)
	return true, l.need(setMemory(len(l.page), l.weight))
}

// maxPage bounds the bytes of records on one page, so that a page of the largest sets takes about 10 MB to write and
// not 1.3 GB. Such a page has fewer sets than its limit and a link to the next page. A thousand usual sets take 100 KB.
const maxPage = 512 << 10

// weight returns the bytes of the records.
func (zs zoneSet) weight() int { return zs.set.Weight() }

// fit returns how many of the sets are on a page. It is at least one, so that every page makes progress.
func (l *setList) fit(sets []zoneSet) int {
	weight := 0
	for i, zs := range sets {
		weight += zs.weight()
		if i == l.q.limit || i > 0 && weight > maxPage {
			return i
		}
	}
	return len(sets)
}

// maxKept returns how many sets keep has at most.
func (l *setList) maxKept() int { return 2*(l.q.limit+1) + smallList }

// keptMemory is the memory of a set that keep has, without its records.
const keptMemory = 1 << 10

// readSorted reads every set that can match, and keeps the first ones behind the marker.
func (l *setList) readSorted() error {
	keep := []zoneSet{}
	fixed := int64(min(l.sets, l.maxKept())) * keptMemory
	if err := l.need(fixed); err != nil {
		return err
	}
	for _, z := range l.order {
		err := l.candidates(z, func(s zone.RecordSet) (bool, error) {
			zs := zoneSet{z, s}
			if !l.match.matches(s) {
				return true, nil
			}
			if l.match.any && l.q.count {
				l.total++
			}
			if l.marker == nil || l.compare(*l.marker, zs) < 0 {
				keep = l.keep(keep, zs)
			}
			return true, l.need(fixed + int64(l.weight))
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(keep, l.compare)
	n := l.fit(keep)
	l.page, l.more = keep[:n], n < len(keep)
	l.weight = 0
	for _, zs := range l.page {
		l.weight += zs.weight()
	}
	return l.need(setMemory(n, l.weight))
}

// keep adds a set to the first ones so far. When these are about twice as many as a page needs, or too large, it sorts
// them and drops those behind the page, except one: that one shows that there is a next page.
func (l *setList) keep(keep []zoneSet, zs zoneSet) []zoneSet {
	keep = append(keep, zs)
	l.weight += zs.weight()
	if len(keep) < l.maxKept() && l.weight < 4*maxPage {
		return keep
	}
	slices.SortFunc(keep, l.compare)
	rest := keep[min(l.fit(keep)+1, len(keep)):]
	clear(rest) // so that the garbage collector can free their records
	keep = keep[:len(keep)-len(rest)]
	l.weight = 0
	for _, zs := range keep {
		l.weight += zs.weight()
	}
	return keep
}

// candidates calls fn for the sets of a zone that can match.
func (l *setList) candidates(z zone.Zone, fn func(zone.RecordSet) (bool, error)) error {
	switch {
	case l.match.name != nil:
		sets, err := l.v.RecordSetsAt(z.ID, *l.match.name)
		for _, s := range sets {
			if _, err := fn(s); err != nil {
				return err
			}
		}
		return err
	case l.match.aliases && !l.isBehind(z.ID):
		return l.aliases(z, fn)
	case l.match.below != nil && l.match.below.IsIn(z.Name):
		return l.v.RecordSetsBelow(z.ID, *l.match.below, fn)
	case l.match.below != nil && !z.Name.IsIn(*l.match.below):
		return nil
	}
	return l.v.RecordSets(z.ID, fn)
}

// aliases calls fn for the ALIAS sets of a zone.
func (l *setList) aliases(z zone.Zone, fn func(zone.RecordSet) (bool, error)) error {
	var failed error
	err := l.v.SetsOfType(z.ID, rr.TypeALIAS, func(n dnsname.Name) bool {
		s, err := l.v.RecordSet(z.ID, n, rr.TypeALIAS)
		if err == nil {
			_, err = fn(s)
		}
		failed = err
		return err == nil
	})
	return errors.Join(err, failed)
}

func (l *setList) compare(a, b zoneSet) int {
	n := 0
	if l.sort != nil {
		n = l.sort(a, b)
	}
	n = cmp.Or(n, compareIDs(a.set.ID, b.set.ID))
	if l.q.desc {
		return -n
	}
	return n
}

var setSorts = map[string]func(a, b zoneSet) int{
	"updated_at": func(a, b zoneSet) int { return a.set.Updated.Compare(b.set.Updated) },
	"zone_id":    func(a, b zoneSet) int { return compareIDs(a.zone.ID, b.zone.ID) },
	"tenant_id":  func(a, b zoneSet) int { return cmp.Compare(a.zone.Project, b.zone.Project) },
	"name": func(a, b zoneSet) int {
		return cmp.Or(a.set.Name.Compare(b.set.Name), cmp.Compare(a.set.Type, b.set.Type))
	},
	"type": func(a, b zoneSet) int { return cmp.Compare(a.set.Type.String(), b.set.Type.String()) },
	"ttl": func(a, b zoneSet) int {
		return cmp.Compare(a.set.Served(0).TTL, b.set.Served(0).TTL)
	},
	"records": func(a, b zoneSet) int {
		return slices.Compare(a.set.Data, b.set.Data)
	},
}

// setMatch holds the parsed filters of a list of record sets.
type setMatch struct {
	any    bool          // there are filters
	none   bool          // nothing can match
	name   *dnsname.Name // only this name matches
	below  *dnsname.Name // only names at or below this one match
	others map[string]string

	status   string                      // in upper case; empty: any
	aliases  bool                        // only an ALIAS can have the wanted status in a zone that all secondaries have
	statusOf func(zone.RecordSet) string // returns the status of a set
}

func newSetMatch(filters map[string]string) setMatch {
	m := setMatch{any: len(filters) > 0, others: map[string]string{}}
	for key, pattern := range filters {
		switch key {
		case "name":
			m.setName(strings.ToLower(pattern))
		case "status":
			m.status = strings.ToUpper(pattern)
			m.aliases = !glob(m.status, statusActive)
		default:
			m.others[key] = strings.ToLower(pattern)
		}
	}
	return m
}

// setName sets the filter for names. An exact name becomes a seek, and "*.name." a walk below the name. An escaped star
// is the label of a wildcard.
func (m *setMatch) setName(pattern string) {
	plain := strings.ReplaceAll(pattern, `\*`, "")
	if !strings.Contains(plain, "*") {
		n, err := dnsname.Parse(pattern)
		if err != nil || !strings.HasSuffix(pattern, ".") {
			m.none = true
			return
		}
		m.name = &n
		return
	}
	m.others["name"] = pattern
	suffix, ok := strings.CutPrefix(pattern, "*.")
	if ok && !strings.Contains(suffix, "*") && strings.HasSuffix(suffix, ".") {
		if n, err := dnsname.Parse(suffix); err == nil {
			m.below = &n
		}
	}
}

func (m *setMatch) matches(s zone.RecordSet) bool {
	if s.Hidden || m.name != nil && s.Name != *m.name {
		return false
	}
	if m.status != "" && !glob(m.status, m.statusOf(s)) {
		return false
	}
	for key, pattern := range m.others {
		if !matchField(s, key, pattern) {
			return false
		}
	}
	return true
}

// matchField compares one field with a pattern in lower case.
func matchField(s zone.RecordSet, key, pattern string) bool {
	switch key {
	case "name":
		return glob(pattern, s.Name.String())
	case "type":
		return glob(pattern, strings.ToLower(s.Type.String()))
	case "ttl":
		return s.TTL != nil && glob(pattern, decimal(*s.TTL))
	case "description":
		return s.Description != nil && glob(pattern, strings.ToLower(*s.Description))
	}
	matches := func(r string) bool { return glob(pattern, strings.ToLower(r)) }
	found := slices.ContainsFunc(s.Texts(), matches)
	if !found && s.Sent != nil {
		s.Sent = nil // the client may know only the canonical texts
		found = slices.ContainsFunc(s.Texts(), matches)
	}
	return found
}
