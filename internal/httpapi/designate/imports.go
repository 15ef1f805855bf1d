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

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/budget"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
	"github.com/nameplane/nameplane/internal/zonefile"
)

// createImport stores a zone file and leaves its commit to Run. As in Designate the reply is 202 with a task to poll,
// and a bad zone file fails the task, not the request.
//
// With ?replace=true the file replaces the content of an existing zone in one step. With ?revive_alias=true the
// comments that an export writes for ALIAS records become ALIAS records again, and the addresses that were derived from
// them are left out. Designate has neither.
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

// imported is a zone that was read from a file.
type imported struct {
	zone    zone.Zone
	stage   *zonefile.Stage
	lowest  uint32                // the lowest TTL in the file
	aliases map[dnsname.Name]bool // the names with an ALIAS that was revived
}

// sets returns the record sets of the file. A set with the TTL of the zone gets no TTL of its own, and so follows later
// changes of the zone's TTL.
func (in imported) sets() iter.Seq[zone.RecordSet] {
	return func(yield func(zone.RecordSet) bool) {
		for set, spelling := range in.stage.Sets() {
			if in.aliases[set.Name] && (set.Type == rr.TypeA || set.Type == rr.TypeAAAA) {
				continue // derived from the ALIAS, which is looked up again
			}
			s := zone.RecordSet{Name: set.Name, Spelling: spelling, Type: set.Type, Data: set.Data}
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

// zoneOf returns the zone that an SOA record and the $TTL directive at the head of the file describe. Without $TTL the
// TTL of the SOA record is the TTL of the zone.
func zoneOf(soa zonefile.Record, head []byte) zone.Zone {
	z := zone.Zone{Name: soa.Name, Spelling: soa.Spelling, Kind: zone.Primary, TTL: soa.TTL}
	if m := ttlLine.FindSubmatch(head); m != nil {
		if n, err := strconv.ParseUint(string(m[1]), 10, 31); err == nil {
			z.TTL = uint32(n)
		}
	}
	data, ok := zone.ParseSOA(soa.Data)
	z.Serial = data.Serial
	if ok {
		z.Email = zone.Mailbox(data.RName)
	}
	return z
}

// enqueue passes the import to Run. It waits up to ten seconds for a free slot, so that a client can upload many zones
// in sequence without polling each task before the next upload.
func (c *call) enqueue(t task, u *upload) {
	run := *c // a copy, because the request ends before the import
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

// runImport commits the zone of an uploaded file. A panic ends this import, not the server.
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
	in.zone.Attributes, in.zone.Pool, in.zone.Project = u.attributes, u.pool, c.scope.project
	release, err := c.reserveCommit(ctx, in)
	if err != nil {
		return err
	}
	defer release()
	return c.importZone(ctx, t, in, isTrue(c.r.URL.Query().Get("replace")))
}

// reserveCommit waits for the memory that the commit takes: for the zone of the file, and for the zone that it
// replaces.
func (c *call) reserveCommit(ctx context.Context, in imported) (release func(), err error) {
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
		return nil, refuse("busy", "the server has too little free memory for this import now; try again later")
	}
	return release, err
}

// memoryPatience is how long an upload or an import waits for memory from the budget.
const memoryPatience = time.Minute

// zoneQuotas returns the quotas for a zone that the caller imports. Administrators have none.
func (c *call) zoneQuotas() (publish.Quotas, error) {
	if c.scope.caller.IsAdmin() {
		return publish.Quotas{ZoneRecords: -1}, nil
	}
	return viewed(c, func(v store.View) (publish.Quotas, error) { return c.api.Publisher.QuotasOf(v, c.scope.project) })
}

// importZone commits a zone. The same commit marks the task as complete, so that the two cannot disagree after a crash.
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
		done.Message = new(z.Name.String() + " imported")
		return importTasks.keep(tx, done)
	})
}

// importTarget returns the zone that receives the records of the file: a new zone, or the one that it replaces. Without
// replace an existing zone is an error, as in Designate.
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
	if err := c.checkCreate(tx.View, z); err != nil {
		return z, err
	}
	p, err := c.schedule(tx.View, z)
	if err != nil {
		return z, err
	}
	z.Pool = uuid.MustParse(p.ID)
	var apex []zone.RecordSet
	for s := range file.sets() {
		if s.Managed {
			apex = append(apex, s)
		} else if s.Name != z.Name && len(apex) > 0 {
			break // sets are sorted, and the apex is first
		}
	}
	z, err = tx.CreateZone(z, apex...)
	return z, zoneExists(err)
}

// finishImport stores why an import failed. A successful import has stored its status in its own commit.
func (c *call) finishImport(ctx context.Context, t task, err error) {
	if err == nil {
		return
	}
	f := c.asFault(err)
	t.fail(errors.New(f.text()))
	err = c.api.Publisher.Commit(context.WithoutCancel(ctx), c.actor(), func(tx *publish.Tx) error {
		t.UpdatedAt = timestamp(tx.Now())
		return importTasks.keep(tx, t)
	})
	if err != nil {
		c.api.Log.Error("import failed, and its status could not be stored", "import", t.ID, "reason", f.text(),
			"err", err)
	}
}

// failInterruptedImports marks the imports as failed that an earlier process did not finish: their files are lost.
func (a *API) failInterruptedImports(ctx context.Context) error {
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
