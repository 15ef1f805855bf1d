package designate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// createImport keeps a zone file and leaves the rest to Run. With ?replace=true the file becomes the content of the
// zone if that exists already, in one step. With ?revive_alias=true the comments that an export has of ALIAS records
// become such again, and the addresses that were made of them are left out.
func (c *call) createImport() (reply, error) {
	u, err := c.receive()
	if err != nil {
		return reply{}, err
	}
	t := task{Status: statusPending, ProjectID: c.scope.project, Version: 1}
	err = c.commit(func(tx *publish.Tx) error {
		t.resourceMeta = newMeta(tx)
		return importTasks.keep(tx, t)
	})
	if err != nil {
		_ = u.stage.Close()
		return reply{}, err
	}
	c.enqueue(t, u)
	return importTasks.created(c, http.StatusAccepted, t), nil
}

func (t *task) fail(err error) {
	t.Status, t.Message = statusError, new(err.Error())
}

// imported is a zone as a file tells it.
type imported struct {
	zone    zone.Zone
	stage   *zonefile.Stage
	lowest  uint32 // TTL
	aliases map[dnsname.Name]bool
}

// sets walks the record sets of the file. One that has the zone's TTL follows it from now on.
func (in imported) sets() iter.Seq[zone.RecordSet] {
	return func(yield func(zone.RecordSet) bool) {
		for set := range in.stage.Sets() {
			if in.aliases[set.Name] && (set.Type == rr.TypeA || set.Type == rr.TypeAAAA) {
				continue // made of the ALIAS, which makes them again
			}
			s := zone.RecordSet{Name: set.Name, Type: set.Type, Data: set.Data}
			if ttl := set.TTL; ttl != in.zone.TTL {
				s.TTL = &ttl
			}
			s.Managed = s.Name == in.zone.Name && (s.Type == rr.TypeSOA || s.Type == rr.TypeNS)
			if !yield(s) {
				return
			}
		}
	}
}

var ttlLine = regexp.MustCompile(`(?m)^\$TTL[ \t]+(\d+)[ \t\r]*(;.*)?$`)

// zoneOf is the zone that an SOA record and the $TTL above it begin. Without $TTL the SOA's own is the zone's.
func zoneOf(soa zonefile.Record, head []byte) zone.Zone {
	z := zone.Zone{Name: soa.Name, Kind: zone.Primary, Pool: poolID, TTL: soa.TTL}
	if m := ttlLine.FindSubmatch(head); m != nil {
		if n, err := strconv.ParseUint(string(m[1]), 10, 31); err == nil {
			z.TTL = uint32(n)
		}
	}
	data, ok := zone.ParseSOA(soa.Data)
	z.Serial = data.Serial
	if ok && !data.RName.IsRoot() {
		z.Email = data.RName.Label() + "@" + trimDot(data.RName.Parent().String())
	}
	return z
}

// enqueue leaves the import to Run, and waits a while for that to have room for it: who imports many zones one after
// the other need not look at each before the next.
func (c *call) enqueue(t task, u *upload) {
	run := *c // the request ends before the import
	run.r = c.r.Clone(context.WithoutCancel(c.r.Context()))
	ctx, cancel := context.WithTimeout(c.r.Context(), 10*time.Second)
	defer cancel()
	err := c.api.imports.put(ctx, c.scope.project, func(ctx context.Context) {
		run.finishImport(ctx, t, run.runImport(ctx, &t, u))
	})
	if err != nil {
		_ = u.stage.Close()
		run.finishImport(run.r.Context(), t, refuse("busy", "too many imports of the project are waiting; try again later"))
	}
}

// runImport commits the zone of a file that came in. A panic ends this import, not the server.
func (c *call) runImport(ctx context.Context, t *task, u *upload) (err error) {
	defer func() {
		_ = u.stage.Close()
		if v := recover(); v != nil {
			err = fmt.Errorf("panic in an import: %v\n%s", v, debug.Stack())
		}
	}()
	in, err := u.imported()
	if err != nil {
		return err
	}
	in.zone.Attributes, in.zone.Project = u.attributes, c.scope.project
	release, err := c.takeImport(ctx, in)
	if err != nil {
		return err
	}
	defer release()
	return c.importZone(ctx, t, in, isTrue(c.r.URL.Query().Get("replace")))
}

// takeImport waits for the memory that the commit of a file takes, and the zone that it replaces.
func (c *call) takeImport(ctx context.Context, in imported) (release func(), err error) {
	records, bytes := in.stage.Records(), in.stage.Bytes()
	have, err := viewed(c, func(v store.View) (zone.Zone, error) { return v.ZoneByName(in.zone.Name) })
	if err == nil {
		records, bytes = records+have.Records, bytes+int64(have.Bytes)
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, memoryPatience)
	defer cancel()
	release, err = c.api.Budget.Take(ctx, c.scope.project, budget.ZoneBytes(records, bytes))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, refuse("busy", "other work of the server takes the memory that this import needs; try again later")
	}
	return release, err
}

// memoryPatience is how long work waits for its share of the memory.
const memoryPatience = time.Minute

// zoneQuotas returns the quotas of a zone that the caller imports. Administrators have none.
func (c *call) zoneQuotas() (publish.Quotas, error) {
	if c.scope.caller.IsAdmin() {
		return publish.Quotas{ZoneRecords: -1}, nil
	}
	return viewed(c, func(v store.View) (publish.Quotas, error) { return c.api.Publisher.QuotasOf(v, c.scope.project) })
}

// importZone commits a zone with the news that its import is complete.
func (c *call) importZone(ctx context.Context, t *task, file imported, replace bool) error {
	return c.api.Publisher.CommitAlone(ctx, c.actor(), func(tx *publish.Tx) error {
		tx.Note("import")
		if c.scope.caller.IsAdmin() {
			tx.LiftQuotas()
		}
		z, err := c.importTarget(tx, file, replace)
		if err != nil {
			return err
		}
		if err := tx.ReplaceSorted(z.ID, file.stage.Records(), file.sets()); err != nil {
			return err
		}
		if err := file.stage.Err(); err != nil {
			return err
		}
		done := *t
		done.ZoneID, done.Status, done.UpdatedAt = new(z.ID.String()), statusComplete, timestamp(tx.Now())
		return importTasks.keep(tx, done)
	})
}

// importTarget is the zone that the file goes into: a new one, or the one that it replaces.
func (c *call) importTarget(tx *publish.Tx, file imported, replace bool) (zone.Zone, error) {
	z := file.zone
	if min(file.lowest, z.TTL) < c.settings.MinTTL {
		return z, invalidTTL(c.settings)
	}
	have, err := tx.ZoneByName(z.Name)
	if err == nil && have.Kind == zone.Secondary && c.owns(have) {
		return z, errSecondary()
	}
	if err == nil && replace && c.owns(have) {
		have.Email, have.TTL = z.Email, z.TTL
		return tx.UpdateZone(have)
	}
	if err := checkNewZone(z, c.settings); err != nil {
		return z, err
	}
	if err := c.mayCreate(tx.View, z); err != nil {
		return z, err
	}
	var apex []zone.RecordSet
	for s := range file.sets() {
		if s.Managed {
			apex = append(apex, s)
		} else if s.Name != z.Name && len(apex) > 0 {
			break // the apex comes first
		}
	}
	z, err = tx.CreateZone(z, apex...)
	return z, zoneExists(z, err)
}

// finishImport notes why an import failed. One that succeeded has noted it itself.
func (c *call) finishImport(ctx context.Context, t task, err error) {
	if err == nil {
		return
	}
	f := c.asFault(err)
	t.fail(errors.New(f.message))
	err = c.api.Publisher.Commit(context.WithoutCancel(ctx), c.actor(), func(tx *publish.Tx) error {
		t.UpdatedAt = timestamp(tx.Now())
		return importTasks.keep(tx, t)
	})
	if err != nil {
		c.api.Log.Error("import failed, and so did noting it", "import", t.ID, "reason", f.message, "err", err)
	}
}

// failLeftImports ends the imports that a process before this one did not finish.
func (a *API) failLeftImports(ctx context.Context) error {
	var left []task
	err := a.Publisher.View(func(v store.View) error {
		return store.EachOf(v, store.KindZoneImport, "", func(_ string, t task) (bool, error) {
			if t.Status == statusPending && !time.Time(t.CreatedAt).After(a.started) {
				left = append(left, t)
			}
			return true, nil
		})
	})
	if err != nil || len(left) == 0 {
		return err
	}
	return a.Publisher.Commit(ctx, ownActor, func(tx *publish.Tx) error {
		for _, t := range left {
			t.fail(errors.New("the server was restarted before the import was finished"))
			if err := importTasks.keep(tx, t); err != nil {
				return err
			}
		}
		return nil
	})
}
