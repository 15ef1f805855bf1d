package designate

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// historyChange is one change in the history of a zone.
type historyChange struct {
	ID        string      `json:"id"` // the number of the commit
	Group     string      `json:"group"`
	Time      timestamp   `json:"created_at"`
	Who       string      `json:"who"`
	ProjectID string      `json:"project_id"`
	API       string      `json:"api"` // the API that the change came through
	RequestID string      `json:"request_id"`
	Note      string      `json:"note"`
	From      uint32      `json:"serial_from"`
	To        uint32      `json:"serial_to"`
	Complete  bool        `json:"complete"`           // false: its record sets were too many to keep, or are damaged
	Damaged   bool        `json:"damaged,omitempty"`  // the stored change cannot be read
	ZoneTTL   *ttlChange  `json:"zone_ttl,omitempty"` // the TTL of record sets without their own; nil: unchanged
	Sets      []setChange `json:"recordsets"`
}

// ttlChange is the TTL of a zone before and after a change.
type ttlChange struct {
	Before uint32 `json:"before"`
	After  uint32 `json:"after"`
}

// setChange is the change of one record set. Before is null when the set was created, After when it was deleted.
type setChange struct {
	Name   string     `json:"name"`
	Type   string     `json:"type"`
	Before *setValues `json:"before"`
	After  *setValues `json:"after"`

	Flattened bool `json:"flattened,omitempty"` // derived from an ALIAS: served, but not listed
}

// setValues holds the fields of a record set that its owner writes.
type setValues struct {
	TTL         *uint32  `json:"ttl"`
	Records     []string `json:"records"`
	Description *string  `json:"description"`
}

func wireChange(ch store.Change) historyChange {
	w := historyChange{ID: strconv.FormatUint(ch.Commit, 10), Group: strconv.FormatUint(ch.Group, 10),
		Time: timestamp(ch.Time), Who: ch.Actor.Who, ProjectID: ch.Actor.Project, API: ch.Actor.API,
		RequestID: ch.Actor.RequestID, Note: ch.Note, From: ch.From, To: ch.To, Complete: !ch.Whole,
		Damaged: ch.Damage != nil, Sets: []setChange{}}
	if ch.Retimed {
		w.ZoneTTL = &ttlChange{ch.TTLFrom, ch.ZoneTTL}
	}
	for _, s := range ch.Sets {
		w.Sets = append(w.Sets, wireSetChange(s.Before, s.After))
	}
	return w
}

func wireSetChange(before, after *zone.RecordSet) setChange {
	any := cmp.Or(after, before)
	return setChange{any.Spelled(), any.Type.String(), valuesOf(before), valuesOf(after), any.Hidden}
}

func valuesOf(s *zone.RecordSet) *setValues {
	if s == nil {
		return nil
	}
	return &setValues{s.TTL, s.Texts(), s.Description}
}

// listHistory lists the changes of a zone, newest first. The marker is the id of a change.
func (c *call) listHistory() (reply, error) {
	q, before, err := c.historyQuery()
	if err != nil {
		return reply{}, err
	}
	var out []historyChange
	total, next := 0, ""
	err = c.view(func(v store.View) error {
		z, err := c.zone(v)
		if err != nil {
			return err
		}
		total, _ = v.CountChanges(z.ID)
		out, next, err = c.changesBefore(v, z, before, q.limit)
		return err
	})
	return c.collection("history", out, next, total), err
}

// changesBefore returns at most the given number of changes of a zone that are older than a commit, and no more than
// maxPage allows. When there are more changes, next is the id of the last one returned.
func (c *call) changesBefore(v store.View, z zone.Zone, before uint64, most int) (
	out []historyChange, next string, err error) {
	out = []historyChange{}
	weight := 0
	err = v.Changes(z.ID, before, func(ch store.Change) (bool, error) {
		weight += changeWeight(ch)
		if len(out) == most || len(out) > 0 && weight > maxPage {
			next = out[len(out)-1].ID
			return false, nil
		}
		c.noteDamage(ch)
		if err := c.need(int64(weight) * replyMemory); err != nil {
			return false, err
		}
		out = append(out, wireChange(ch))
		return true, nil
	})
	if err != nil {
		return nil, "", err // see setPage
	}
	return out, next, nil
}

// changeWeight returns about how many bytes a change takes in memory.
func changeWeight(ch store.Change) int {
	n := eachWeight
	for _, s := range ch.Sets {
		n += eachWeight
		for _, side := range []*zone.RecordSet{s.Before, s.After} {
			if side != nil {
				n += zoneSet{set: *side}.weight()
			}
		}
	}
	return n
}

// historyQuery reads the query of a history. Its markers are numbers of commits, not UUIDs as in other lists.
func (c *call) historyQuery() (q query, before uint64, err error) {
	values := c.r.URL.Query()
	q.limit = defaultLimit
	if err := q.readFilters(values, nil); err != nil {
		return q, 0, err
	}
	if values.Has("limit") {
		if q.limit, err = parseLimit(values.Get("limit")); err != nil {
			return q, 0, err
		}
	}
	if values.Has("marker") {
		before, err = strconv.ParseUint(values.Get("marker"), 10, 64)
		if err != nil || before == 0 {
			return q, 0, refuse("invalid_marker", "the marker of a history is the id of one of its changes")
		}
	}
	return q, before, nil
}

// setKey identifies a record set within its zone.
type setKey struct{ name, typ string }

func keyOf(s store.SetChange) setKey {
	any := cmp.Or(s.After, s.Before)
	return setKey{any.Name.Wire(), any.Type.String()}
}

// maxWalk bounds the bytes of history that one request reads. Reading them takes well below a second; a rollback reads
// them while every other change waits. The bound is about fifty thousand changes of usual sets, five times what a
// journal keeps.
const maxWalk = 16 << 20

// walkMemory is the memory for each byte of history: the changes themselves, and those that a rollback makes of them.
const walkMemory = 4

// changesSince describes how a zone at a serial differed from the zone now.
type changesSince struct {
	sets map[setKey]store.SetChange // the sets that have changed since: Before is the value then, After the value now
	ttl  uint32                     // the TTL of the zone then

	weight int // the bytes of the history that was read
}

// sinceSerial reads the history backwards until the zone had the serial. It fails with 409 when the history has a gap,
// or does not reach that far: a guess would roll a zone back to a state that it never had.
func (c *call) sinceSerial(v store.View, z zone.Zone, serial uint32) (changesSince, error) {
	out := changesSince{sets: map[setKey]store.SetChange{}, ttl: z.TTL}
	reached := z.Serial == serial
	oldest := z.Serial
	if reached {
		return out, nil
	}
	err := v.Changes(z.ID, 0, func(ch store.Change) (bool, error) {
		switch {
		case ch.Damage == nil && ch.To != oldest: // the history lacks a change between the two
			return false, historyEnds(serial, oldest)
		case oldest == serial:
			reached = true
			return false, nil
		case ch.Damage != nil:
			c.noteDamage(ch)
			return false, historyDamaged(ch, serial, oldest)
		case ch.Whole:
			return false, historyEnds(serial, oldest)
		}
		if out.weight += changeWeight(ch); out.weight > maxWalk {
			return false, &fault{status: http.StatusConflict, kind: "history_too_long",
				message: "Too much has changed since serial " + decimal(serial) + "; choose a later one."}
		}
		out.undo(ch)
		oldest = ch.From
		return true, c.need(int64(out.weight) * walkMemory)
	})
	if err == nil && !reached && (oldest != serial || serial == 0) {
		err = historyEnds(serial, oldest)
	}
	return out, err
}

// undo moves p to the moment before a change. Changes must come newest first.
func (p *changesSince) undo(ch store.Change) {
	for _, s := range ch.Sets {
		key := keyOf(s)
		if later, ok := p.sets[key]; ok {
			s.After = later.After
		}
		p.sets[key] = s
	}
	if ch.Retimed {
		p.ttl = ch.TTLFrom
	}
}

func historyEnds(serial, at uint32) *fault {
	return &fault{status: http.StatusConflict, kind: "history_incomplete",
		message: "The history does not reach serial " + decimal(serial) + "; it goes back to serial " + decimal(at) + "."}
}

// historyDamaged returns the error for a change that cannot be read, and that lies between now and the serial.
func historyDamaged(ch store.Change, serial, at uint32) *fault {
	return &fault{status: http.StatusConflict, kind: "history_damaged",
		message: "Change " + strconv.FormatUint(ch.Commit, 10) + " of the history is damaged and cannot be read, so the " +
			"zone at serial " + decimal(serial) + " is not known. The history goes back to serial " + decimal(at) +
			"; for an older state restore a backup, or make the changes by hand."}
}

// noteDamage logs a change that cannot be read, once in the life of the process.
func (c *call) noteDamage(ch store.Change) {
	if ch.Damage == nil {
		return
	}
	type row struct {
		zone   uuid.UUID
		commit uint64
	}
	if _, logged := c.api.damaged.LoadOrStore(row{ch.Zone, ch.Commit}, true); !logged {
		c.api.Log.Error("a change in the history of a zone is damaged; the zone itself is not, but the disk may be "+
			"failing: make a backup", "zone", ch.Zone, "change", ch.Commit, "err", ch.Damage)
	}
}

// showDiff returns the differences between a zone at two serials.
func (c *call) showDiff() (reply, error) {
	from, err := c.serialParam("from")
	if err != nil {
		return reply{}, err
	}
	to, err := c.serialParam("to")
	if err != nil {
		return reply{}, err
	}
	body := map[string]any{"from": from, "to": to}
	err = c.view(func(v store.View) error {
		z, err := c.zone(v)
		if err != nil {
			return err
		}
		body["recordsets"], body["zone_ttl"], err = c.diff(v, z, from, to)
		return err
	})
	return ok(body), err
}

func (c *call) serialParam(name string) (uint32, error) {
	n, err := strconv.ParseUint(c.r.URL.Query().Get(name), 10, 32)
	if err != nil {
		return 0, badRequest("%s must be a serial of the zone", name)
	}
	return uint32(n), nil
}

// diff compares the zone at two serials by the changes since each of them.
func (c *call) diff(v store.View, z zone.Zone, from, to uint32) ([]setChange, ttlChange, error) {
	sinceFrom, err := c.sinceSerial(v, z, from)
	if err != nil {
		return nil, ttlChange{}, err
	}
	sinceTo, err := c.sinceSerial(v, z, to)
	if err != nil {
		return nil, ttlChange{}, err
	}
	if err := c.need(int64(sinceFrom.weight+sinceTo.weight) * replyMemory); err != nil {
		return nil, ttlChange{}, err
	}
	for key, s := range sinceTo.sets {
		f, ok := sinceFrom.sets[key]
		if !ok { // unchanged since from: the value at from is the value now
			f.Before = s.After
		}
		f.After = s.Before
		sinceFrom.sets[key] = f
	}
	out := []setChange{}
	for _, s := range sinceFrom.sets {
		if s = shownChange(s); !sameValues(s.Before, s.After) {
			out = append(out, wireSetChange(s.Before, s.After))
		}
	}
	slices.SortFunc(out, func(a, b setChange) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Type, b.Type))
	})
	return out, ttlChange{sinceFrom.ttl, sinceTo.ttl}, nil
}

func sameValues(a, b *zone.RecordSet) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Data, b.Data) && equalPtr(a.TTL, b.TTL) && equalPtr(a.Description, b.Description)
}

func equalPtr[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}
