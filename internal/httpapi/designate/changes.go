package designate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// maxChanges bounds a batch to the number of record sets that one entry of the history can hold.
const maxChanges = 10_000

// change is one parsed item of a batch.
type change struct {
	values  values
	action  string // create, update, upsert or delete
	name    dnsname.Name
	spelled string // the name as it was sent; "": canonical
	typ     rr.Type
	ifMatch string // the entity tag that the set must have; "": any
}

// applyChanges applies all changes of a batch with one step of the serial, or none of them.
func (c *call) applyChanges() (reply, error) {
	in, err := c.input("changes", "changes")
	if err != nil {
		return reply{}, err
	}
	items, err := readChanges(in)
	if err != nil {
		return reply{}, err
	}
	var sets []changed
	var left zone.Zone // the zone after the batch
	var shared bool
	err = c.commit(func(tx *publish.Tx) (err error) {
		tx.Note("batch of %d changes", len(items))
		z, err := c.zone(tx.View)
		if err != nil {
			return err
		}
		if shared, err = isShared(tx.View, z.ID); err != nil {
			return err
		}
		if err := c.ifMatch(func() any { return zoneOnWire(z, shared) }); err != nil {
			return err
		}
		if sets, err = c.applyAll(tx, z, items); err != nil {
			return err
		}
		if err := c.need(batchMemory(sets)); err != nil {
			return err
		}
		return tx.After(z.ID, &left)
	})
	if err != nil {
		return reply{}, err
	}
	return reply{status: http.StatusOK, etag: tagOf(zoneOnWire(left, shared)),
		body: wireChanges{c.changedSets(sets), c.linkedZone(left, shared)}}, nil
}

// readChanges reads all items, so that their problems are reported together.
func readChanges(in *input) ([]change, error) {
	in.require("changes")
	var raw []json.RawMessage
	in.get("changes", "array", &raw)
	if len(raw) > maxChanges {
		in.note("changes", fmt.Sprintf("%d changes are too many", len(raw)), "maxItems", maxChanges)
	}
	if err := in.err(); err != nil {
		return nil, err
	}
	items := make([]change, 0, len(raw))
	for i, r := range raw {
		item := &input{resource: "change", path: []any{"changes", i}}
		if json.Unmarshal(r, &item.fields) != nil || item.fields == nil {
			in.noteItem("changes", i, "the change is not an object", "type", "object")
			continue
		}
		items = append(items, readChange(item))
		in.problems = append(in.problems, item.problems...)
	}
	return items, in.err()
}

func readChange(in *input) change {
	var ch change
	err := in.known("action", "name", "type", "ttl", "records", "description", "if_match")
	if f, ok := errors.AsType[*fault](err); ok {
		in.problems = append(in.problems, problem{in.path, f.message, "additionalProperties", false})
	}
	in.require("action", "name", "type")
	if a := in.text("action", 16); a != nil {
		ch.action = *a
	}
	switch ch.action {
	case "create", "update", "upsert", "delete", "":
	default:
		in.note("action", fmt.Sprintf("'%s' is not one of create, update, upsert, delete", ch.action), "enum",
			[]string{"create", "update", "upsert", "delete"})
	}
	ch.name, ch.spelled = in.hostname("name", true)
	if s := in.text("type", 32); s != nil {
		t, ok := parseType(*s)
		if !ok {
			in.note("type", fmt.Sprintf("'%s' is not a supported record type", *s), "value", []string{*s})
		}
		ch.typ = t
	}
	if s := in.text("if_match", 64); s != nil {
		ch.ifMatch = *s
	}
	checkName(in, ch.typ, ch.name)
	ch.values = readValues(in, ch.typ)
	return ch
}

// changed is the result of one item of a batch: the record set that it wrote or deleted.
type changed struct {
	zoneSet
	deleted bool
}

// batchMemory returns the memory for the records in the reply to a batch. They can be many more than those of the
// request, which names the sets that it deletes or gives another TTL. The memory of the request covers the rest.
func batchMemory(sets []changed) int64 {
	n := 0
	for _, s := range sets {
		n += s.weight()
	}
	return setMemory(0, n)
}

// changedSets returns the record sets of a batch for its reply. Call it after the commit: the status of an ALIAS is not
// known before.
func (c *call) changedSets(sets []changed) []wireRecordSet {
	out := make([]wireRecordSet, 0, len(sets))
	for _, s := range sets {
		if s.deleted {
			out = append(out, c.deletedSet(s.zoneSet))
		} else {
			out = append(out, c.linkedSet(s.zoneSet))
		}
	}
	return out
}

// applyAll applies the changes in order. An error names the item that failed.
func (c *call) applyAll(tx *publish.Tx, z zone.Zone, items []change) ([]changed, error) {
	out := make([]changed, 0, len(items))
	for i, ch := range items {
		set, err := c.applyOne(tx, z, ch)
		if err != nil {
			return nil, itemFault(i, c, err)
		}
		out = append(out, changed{set, ch.action == "delete"})
	}
	return out, nil
}

// itemFault returns the fault of one item of a batch.
func itemFault(i int, c *call, err error) error {
	f := *c.asFault(err)
	text := f.text()
	f.problems = []problem{{[]any{"changes", i}, text, f.kind, nil}}
	f.message = fmt.Sprintf("Change %d of the batch, counted from 0: %s", i, text)
	return &f
}

// applyOne applies one change and returns the record set that it wrote or deleted. A set that was derived from an ALIAS
// counts as absent: addSet replaces it.
func (c *call) applyOne(tx *publish.Tx, z zone.Zone, ch change) (zoneSet, error) {
	was, err := tx.RecordSet(z.ID, ch.name, ch.typ)
	exists := err == nil && !was.Hidden
	if was.Hidden {
		was = zone.RecordSet{}
	}
	zs := zoneSet{z, was}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return zs, err
	}
	if !exists && (ch.action == "update" || ch.action == "delete") {
		return zs, notFound("recordset", "RecordSet")
	}
	if ch.ifMatch != "" && (!exists || !sameWritten(ch.ifMatch, tagOf(c.wire(zs))) && ch.ifMatch != "*") {
		return zs, store.ErrChanged
	}
	if ch.action == "delete" {
		if err := c.checkChange(zs.set); err != nil {
			return zs, err
		}
		return zs, tx.DeleteSet(z.ID, ch.name, ch.typ)
	}
	next := was
	next.Name, next.Type, next.Spelling = ch.name, ch.typ, ch.spelled
	ch.values.apply(&next)
	if exists && ch.action != "create" {
		zs.set, err = c.changeSet(tx, zs, next)
	} else {
		zs.set, err = c.addSet(tx, z, next)
	}
	return zs, err
}
