package designate

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// A pool can have as many zones as tenants create, so a change of its name servers does not change the zones itself.
// It leaves a row of KindPoolDue, and syncPools then changes one zone in each commit, also after a crash. The row goes
// when all zones have the new servers.

// serversDue describes the name servers that zones of a pool may still have. A pool can change again before all zones
// have its servers, so zones may differ.
type serversDue struct {
	Any []dnsname.Name `json:"any"` // servers of the pool at some time since the zones were equal
	All []dnsname.Name `json:"all"` // servers of the pool at all these times
}

// dueAfter returns the servers that zones of a pool may have when the pool has other ones than before.
func dueAfter(v store.View, poolID string, before []dnsname.Name) (due serversDue, err error) {
	err = v.Object(store.KindPoolDue, poolID, &due)
	if errors.Is(err, store.ErrNotFound) {
		return serversDue{before, before}, nil
	}
	for _, n := range before {
		if !slices.Contains(due.Any, n) {
			due.Any = append(due.Any, n)
		}
	}
	due.All = slices.DeleteFunc(due.All, func(n dnsname.Name) bool { return !slices.Contains(before, n) })
	return due, err
}

// setServers gives a zone the name servers of its pool. As in Designate it removes servers that the pool had and adds
// those that are new in the pool. Other NS records of the zone stay, for example those of an imported file.
func setServers(tx *publish.Tx, z zone.Zone, due serversDue, now []dnsname.Name) error {
	if z.Kind != zone.Primary || len(now) == 0 {
		return nil
	}
	tx.LiftQuotas() // the tenant did not choose how many servers the pool has
	set, err := tx.RecordSet(z.ID, z.Name, rr.TypeNS)
	if err != nil {
		return err
	}
	set.Data = slices.DeleteFunc(set.Data, func(d string) bool {
		n, ok := rr.Target(rr.TypeNS, d)
		return ok && slices.Contains(due.Any, n) && !slices.Contains(now, n)
	})
	for _, n := range now {
		if !slices.Contains(due.All, n) {
			set.Data = append(set.Data, n.Wire())
		}
	}
	if len(set.Data) == 0 {
		set.Data = []string{now[0].Wire()} // an administrator had deleted the servers that stay in the pool
	}
	if _, err := tx.UpdateSet(set); err != nil {
		return err
	}
	return setPrimary(tx, z, due, now[0])
}

// setPrimary changes the primary name server in the SOA record of a zone, if it was one of the pool.
func setPrimary(tx *publish.Tx, z zone.Zone, due serversDue, primary dnsname.Name) error {
	set, err := tx.RecordSet(z.ID, z.Name, rr.TypeSOA)
	if err != nil || len(set.Data) != 1 {
		return err
	}
	soa, ok := zone.ParseSOA(set.Data[0])
	if !ok || soa.MName == primary || !slices.Contains(due.Any, soa.MName) {
		return nil
	}
	soa.MName = primary
	set.Data = []string{soa.Data()}
	_, err = tx.UpdateSet(set)
	return err
}

// wakePools makes runPools search for pools with new servers.
func (a *API) wakePools() {
	select {
	case a.poolsDue <- struct{}{}:
	default: // it has not begun to search since the last call
	}
}

// poolRetry is how long runPools waits after an error, for example of a full disk.
const poolRetry = 10 * time.Second

// runPools gives zones the new name servers of their pools, until ctx ends.
func (a *API) runPools(ctx context.Context) {
	for {
		var retry <-chan time.Time
		if err := a.syncPools(ctx); err != nil && ctx.Err() == nil {
			a.Log.Error("zones do not have the new name servers of their pool yet", "error", err, "retry", poolRetry)
			retry = time.After(poolRetry)
		}
		select {
		case <-a.poolsDue:
		case <-retry:
		case <-ctx.Done():
			return
		}
	}
}

// syncPools gives the zones of all changed pools their new name servers.
func (a *API) syncPools(ctx context.Context) error {
	for {
		var poolID string
		var due serversDue
		err := a.Publisher.View(func(v store.View) error {
			return store.EachOf(v, store.KindPoolDue, "", func(id string, d serversDue) (bool, error) {
				poolID, due = id, d
				return false, nil
			})
		})
		if err != nil || poolID == "" {
			return err
		}
		if err := a.syncPool(ctx, poolID, due); err != nil {
			return err
		}
	}
}

// poolStep is how many zones of a pool syncPool reads at a time.
const poolStep = 100

// syncPool changes the zones of one pool. When the pool changes meanwhile, its row stays and syncPools begins again.
func (a *API) syncPool(ctx context.Context, poolID string, due serversDue) error {
	id, err := uuid.Parse(poolID)
	if err != nil {
		return err
	}
	for after := ""; ; {
		var zones []uuid.UUID
		err := a.Publisher.View(func(v store.View) (err error) {
			zones, after, err = v.ZonesIn(id, after, poolStep)
			return err
		})
		if err != nil {
			return err
		}
		if len(zones) == 0 {
			break
		}
		for _, z := range zones {
			if err := a.syncZone(ctx, id, z); err != nil {
				return err
			}
		}
	}
	return a.Publisher.Commit(ctx, ownActor, func(tx *publish.Tx) error {
		var now serversDue
		if err := tx.Object(store.KindPoolDue, poolID, &now); err != nil || !reflect.DeepEqual(now, due) {
			return ignoreAbsent(err)
		}
		return tx.DeleteObject(store.KindPoolDue, poolID)
	})
}

// syncZone gives one zone the name servers of its pool.
func (a *API) syncZone(ctx context.Context, poolID, zoneID uuid.UUID) error {
	return a.Publisher.Commit(ctx, ownActor, func(tx *publish.Tx) error {
		tx.Note("name servers of the pool")
		z, err := tx.Zone(zoneID)
		if err != nil || z.Pool != poolID {
			return ignoreAbsent(err) // deleted or moved meanwhile
		}
		var p pool
		if err := tx.Object(store.KindPool, poolID.String(), &p); err != nil {
			return ignoreAbsent(err)
		}
		var due serversDue
		if err := tx.Object(store.KindPoolDue, poolID.String(), &due); err != nil {
			return ignoreAbsent(err)
		}
		return setServers(tx, z, due, p.servers())
	})
}

func ignoreAbsent(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
