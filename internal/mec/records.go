package mec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
)

// ZoneRecords is an overlay zone with records of the platform.
type ZoneRecords struct {
	Name    dnsname.Name
	Records int
}

// EachZone calls fn for each overlay zone that has records of the platform. An error of fn ends the walk.
func (s *Service) EachZone(fn func(ZoneRecords) error) error {
	return s.pub.View(func(v store.View) error { return eachZone(v, fn) })
}

func eachZone(v store.View, fn func(ZoneRecords) error) error {
	return store.EachOf(v, store.KindMECZone, "", func(id string, count int) (bool, error) {
		n, err := dnsname.Parse(id)
		if err == nil {
			err = fn(ZoneRecords{n, count})
		}
		return err == nil, err
	})
}

// inZones calls fn for a zone, or for each zone with records when zoneName is the zero Name.
func inZones(v store.View, zoneName dnsname.Name, fn func(dnsname.Name) error) error {
	if !zoneName.IsZero() {
		return fn(zoneName)
	}
	return eachZone(v, func(z ZoneRecords) error { return fn(z.Name) })
}

// EachRecord calls fn for the platform's records in a zone, or in all zones when zoneName is the zero Name. An error of
// fn ends the walk.
func (s *Service) EachRecord(zoneName dnsname.Name, fn func(Record) error) error {
	return s.pub.View(func(v store.View) error {
		return inZones(v, zoneName, func(z dnsname.Name) error {
			return store.EachOf(v, kindRecords(z), "", func(id string, row recordRow) (bool, error) {
				n, t, err := parseRecordID(id)
				if err == nil {
					err = fn(row.record(z, n, t))
				}
				return err == nil, err
			})
		})
	})
}

func parseRecordID(id string) (dnsname.Name, rr.Type, error) {
	name, typ, _ := strings.Cut(id, "\x00")
	n, err := dnsname.Parse(name)
	if err != nil {
		return n, 0, err
	}
	t, err := rr.ParseType(typ)
	return n, t, err
}

// RecordsAt lists the platform's records of one name in a zone, or in all zones when zoneName is the zero Name.
func (s *Service) RecordsAt(zoneName, n dnsname.Name) ([]Record, error) {
	records := []Record{}
	err := s.pub.View(func(v store.View) error {
		return inZones(v, zoneName, func(z dnsname.Name) error {
			for _, t := range []rr.Type{rr.TypeA, rr.TypeAAAA} {
				r, err := readRecord(v, z, n, t)
				if err == nil {
					records = append(records, r)
				} else if !errors.Is(err, store.ErrNotFound) {
					return err
				}
			}
			return nil
		})
	})
	return records, err
}

// Record returns one record, or store.ErrNotFound. For the zero zone it returns the record of the most specific zone:
// that one is served.
func (s *Service) Record(zoneName, n dnsname.Name, t rr.Type) (Record, error) {
	return publish.Read(s.pub, func(v store.View) (Record, error) { return readRecord(v, zoneName, n, t) })
}

func readRecord(v store.View, zoneName, n dnsname.Name, t rr.Type) (Record, error) {
	if zoneName.IsZero() {
		for z := n; !z.IsZero(); z = z.Parent() {
			if r, err := readRecord(v, z, n, t); !errors.Is(err, store.ErrNotFound) {
				return r, err
			}
		}
		return Record{}, fmt.Errorf("record %s %s: %w", n, t, store.ErrNotFound)
	}
	var row recordRow
	err := v.Object(kindRecords(zoneName), recordID(n, t), &row)
	return row.record(zoneName, n, t), wrapNotFound(err, "record %s %s in zone %s", n, t, zoneName)
}

// PutRecords creates or replaces records, all or none. Of two records for the same name and type the later one is kept.
func (s *Service) PutRecords(ctx context.Context, actor store.Actor, records []Record) error {
	return s.writeRecords(ctx, actor, records, func(Record, bool) error { return nil })
}

// CreateRecords creates records, all or none. It returns store.ErrExists if one of them exists.
func (s *Service) CreateRecords(ctx context.Context, actor store.Actor, records []Record) error {
	return s.writeRecords(ctx, actor, records, func(r Record, exists bool) error {
		if exists {
			return fmt.Errorf("record %s %s in zone %s: %w", r.Name, r.Type, r.Zone, store.ErrExists)
		}
		return nil
	})
}

// ReplaceRecord changes a record, or returns store.ErrNotFound.
func (s *Service) ReplaceRecord(ctx context.Context, actor store.Actor, r Record) error {
	return s.writeRecords(ctx, actor, []Record{r}, func(r Record, exists bool) error {
		if !exists {
			return fmt.Errorf("record %s %s in zone %s: %w", r.Name, r.Type, r.Zone, store.ErrNotFound)
		}
		return nil
	})
}

func (s *Service) writeRecords(ctx context.Context, actor store.Actor, records []Record,
	check func(r Record, exists bool) error) error {
	return s.commit(ctx, actor, func(e *edit) error {
		e.tx.Note("write records")
		for _, r := range records {
			was, err := readRecord(e.tx.View, r.Zone, r.Name, r.Type)
			exists := err == nil
			if !exists && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if err := check(r, exists); err != nil {
				return err
			}
			if exists && was.same(r) {
				continue
			}
			if err := e.putRecord(r, exists); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *edit) putRecord(r Record, exists bool) error {
	if !exists {
		if err := e.countRecord(r.Zone, 1); err != nil {
			return err
		}
		if err := e.tx.PutObject(store.KindMECName, r.nameRow(), 1); err != nil {
			return err
		}
	}
	row := recordRow{r.TTL, r.Addrs, r.LoadBalance, e.tx.Now()}
	if err := e.tx.PutObject(kindRecords(r.Zone), recordID(r.Name, r.Type), row); err != nil {
		return err
	}
	return e.claims.put(r.key(), r.claim())
}

// countRecord updates the number of records of a zone. A zone without records is removed from the list of zones.
func (e *edit) countRecord(zoneName dnsname.Name, by int) error {
	var n int
	id := zoneName.String()
	if err := e.tx.Object(store.KindMECZone, id, &n); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if n += by; n == 0 {
		return e.tx.DeleteObject(store.KindMECZone, id)
	}
	return e.tx.PutObject(store.KindMECZone, id, n)
}

// DeleteRecord deletes a record, or returns store.ErrNotFound. The zero zone has the same meaning as for Record.
func (s *Service) DeleteRecord(ctx context.Context, actor store.Actor, zoneName, n dnsname.Name, t rr.Type) error {
	return s.commit(ctx, actor, func(e *edit) error {
		was, err := readRecord(e.tx.View, zoneName, n, t)
		if err != nil {
			return err
		}
		e.tx.Note("delete record")
		if err := e.tx.DeleteObject(kindRecords(was.Zone), recordID(n, t)); err != nil {
			return err
		}
		if err := e.tx.DeleteObject(store.KindMECName, was.nameRow()); err != nil {
			return err
		}
		if err := e.countRecord(was.Zone, -1); err != nil {
			return err
		}
		return e.claims.drop(was.key(), claim{})
	})
}
