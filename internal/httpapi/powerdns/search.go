package powerdns

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/nameplane/nameplane/internal/httpapi"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// found is a result of a search. Zones have no more than the first three fields.
type found struct {
	Name       string  `json:"name"`
	ObjectType string  `json:"object_type"`
	ZoneID     string  `json:"zone_id"`
	Zone       string  `json:"zone,omitempty"`
	Type       string  `json:"type,omitempty"`
	TTL        *uint32 `json:"ttl,omitempty"`
	Disabled   *bool   `json:"disabled,omitempty"`
	Content    *string `json:"content,omitempty"`
}

// query is a search, and its results.
type query struct {
	pattern  *pattern
	kind     string // zone, record, comment or all
	most     int    // of each kind
	zones    []found
	records  []found
	comments []found
	bytes    int // of all results
	scanned  int // bytes of all names and records that were compared
}

// mostFound bounds the results of each kind.
const mostFound = 10_000

// maxScanned bounds the record sets that a search compares, in bytes: it reads them in one transaction, and the store
// grows meanwhile. All zones of a project at its default quotas weigh less.
const maxScanned = 512 << 20

func (c *call) readQuery() (*query, error) {
	v := c.r.URL.Query()
	text := strings.ToLower(v.Get("q"))
	switch {
	case text == "":
		return nil, refuse("Query q can't be blank")
	case len(text) > maxPattern:
		return nil, refuse("Query q is longer than %d bytes", maxPattern)
	}
	q := &query{pattern: newPattern(text), kind: v.Get("object_type"), most: 100}
	if s := v.Get("max"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, refuse("Maximum entries must be larger than 0")
		}
		q.most = min(n, mostFound)
	}
	if q.kind == "" {
		q.kind = "all"
	}
	if !slices.Contains([]string{"all", "zone", "record", "comment"}, q.kind) {
		return nil, refuse("object_type must be one of the following options: all, zone, record, comment")
	}
	return q, nil
}

// search finds zones, records and comments in the zones that the caller sees. It can read every record of a project.
// The Frame bounds how many reads of a project run at a time.
func (c *call) search() (reply, error) {
	q, err := c.readQuery()
	if err != nil {
		return reply{}, err
	}
	err = c.view(func(v store.View) error {
		q.zones, q.records, q.comments, q.bytes, q.scanned = []found{}, nil, nil, 0, 0
		list, err := c.rules.Zones(v)
		if err != nil {
			return err
		}
		for _, z := range list {
			if q.wants("zone", q.zones) && q.pattern.matches(withoutDot(z.Name)) {
				q.zones = append(q.zones, found{Name: z.Name.String(), ObjectType: "zone", ZoneID: idOfName(z.Name)})
			}
			if err := c.searchZone(v, z, q); err != nil {
				return err
			}
		}
		return nil
	})
	return ok(append(append(q.zones, q.records...), q.comments...)), err
}

// wants reports whether the search needs more results of a kind.
func (q *query) wants(kind string, have []found) bool {
	return (q.kind == kind || q.kind == "all") && len(have) < q.most
}

func (c *call) searchZone(v store.View, z zone.Zone, q *query) error {
	return v.RecordSets(z.ID, func(s zone.RecordSet) (bool, error) {
		records, comments := q.wants("record", q.records), q.wants("comment", q.comments)
		if !isShown(s) || !records && !comments {
			return records || comments, nil
		}
		if err := q.scan(c.r.Context(), s); err != nil {
			return false, err
		}
		if records {
			q.addRecords(z, s)
		}
		if comments && s.Description != nil && (q.pattern.matches(withoutDot(s.Name)) ||
			q.pattern.matches(*s.Description)) {
			q.comments = append(q.comments, found{Name: s.Name.String(), ObjectType: "comment", ZoneID: idOfName(z.Name),
				Zone: z.Name.String(), Type: s.Type.String(), Content: s.Description})
			q.bytes += len(*s.Description)
		}
		return true, httpapi.Need(c.r.Context(), httpapi.SetMemory(len(q.records)+len(q.comments), q.bytes))
	})
}

// addRecords adds the records of a set that match by their name or content.
func (q *query) addRecords(z zone.Zone, s zone.RecordSet) {
	named := q.pattern.matches(withoutDot(s.Name))
	for _, d := range s.Data {
		text := contentText(s.Type, d)
		searched := strings.TrimSuffix(text, ".")
		if s.Type == rr.TypeMX || s.Type == rr.TypeSRV { // PowerDNS stores their first number by itself
			_, searched, _ = strings.Cut(searched, " ")
		}
		if len(q.records) == q.most || !named && !q.pattern.matches(searched) {
			continue
		}
		ttl := ttlOf(z, s)
		q.records = append(q.records, found{Name: s.Name.String(), ObjectType: "record", ZoneID: idOfName(z.Name),
			Zone: z.Name.String(), Type: s.Type.String(), TTL: &ttl, Disabled: new(false), Content: &text})
		q.bytes += len(text)
	}
}

// scan counts a set that is compared. It returns an error when the client has gone, or the search takes too long.
func (q *query) scan(ctx context.Context, s zone.RecordSet) error {
	q.scanned += httpapi.EachWeight + s.Weight()
	if q.scanned > maxScanned {
		return refuse("The search compares more than %d MiB of records: set object_type=zone, or read the zones",
			maxScanned>>20)
	}
	return ctx.Err()
}
