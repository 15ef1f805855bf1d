package transfer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/rr"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// attempt refreshes one zone. It queries the masters of the zone one after the other, until one has the zone. Each
// master is a job of its own.
type attempt struct {
	*Refresher
	id    uuid.UUID
	force bool
	at    int     // index of the next master
	errs  []error // errors of the masters before

	zone   zone.Zone
	quotas publish.Quotas
	key    Key
	state  publish.Secondary
	has    bool     // a copy exists
	soa    zone.SOA // SOA of the copy
}

// load reads the state of our copy.
func (a *attempt) load() (err error) {
	if a.key, err = a.keys.forZone(a.id); err != nil {
		return err
	}
	return a.pub.View(func(v store.View) (err error) {
		if a.zone, err = v.Zone(a.id); err != nil {
			return err
		}
		if a.quotas, err = a.pub.QuotasOf(v, a.zone.Project); err != nil {
			return err
		}
		if a.state, err = publish.SecondaryOf(v, a.id); err != nil {
			return err
		}
		set, err := v.RecordSet(a.id, a.zone.Name, rr.TypeSOA)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err == nil && len(set.Data) == 1 {
			a.soa, a.has = zone.ParseSOA(set.Data[0])
		}
		return err
	})
}

var errGone = errors.New("the zone is no longer a SECONDARY zone")

// run executes a job: it queries the next master. The attempt continues with the job that run returns, or ends if that
// is nil.
func (a *attempt) run(ctx context.Context, t job) (*job, error) {
	err := a.load()
	switch {
	case errors.Is(err, store.ErrNotFound) || err == nil && a.zone.Kind != zone.Secondary:
		return nil, errGone
	case err != nil:
		return nil, err
	case a.at >= len(a.zone.Masters):
		return nil, a.failed(ctx)
	}
	next, m, err := a.job()
	if next != t {
		return &next, nil // the masters or the owner changed while the job was queued
	}
	// Serials of other masters say nothing about our copy.
	a.force = a.force || a.state.Masters != "" && a.state.Masters != strings.Join(a.zone.Masters, " ")
	if err == nil { // again, because the prefixes of NAT64 may be newer than the masters
		err = CheckMaster(m.Addr(), a.zone.MastersBy, a.opts.Special)
	}
	if err == nil {
		asking, cancel := context.WithTimeout(ctx, masterTimeout)
		err = a.refreshFrom(asking, m)
		cancel()
	}
	if err == nil {
		return nil, a.load()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	a.errs = append(a.errs, fmt.Errorf("%s: %w", a.zone.Masters[a.at], err))
	if a.at++; a.at == len(a.zone.Masters) {
		return nil, a.failed(ctx)
	}
	next, _, _ = a.job() // the next run returns the error
	return &next, nil
}

// job returns the job for the next master of the zone, and that master.
func (a *attempt) job() (job, Remote, error) {
	t := job{zone: a.zone.ID, project: a.zone.Project}
	if a.at >= len(a.zone.Masters) {
		return t, Remote{}, nil
	}
	m, err := ParseMaster(a.zone.Masters[a.at])
	t.master = SourceOf(m.Addr())
	return t, m, err
}

// failed ends an attempt in which every master failed.
func (a *attempt) failed(ctx context.Context) error {
	if len(a.zone.Masters) == 0 {
		a.errs = append(a.errs, errors.New("the zone has no masters"))
	}
	err := errors.Join(a.errs...)
	a.stat.failed.Inc()
	a.opts.Log.Warn("zone not refreshed", "zone", a.zone.Name.String(), "error", err)
	return errors.Join(err, a.expire(ctx))
}

// refreshFrom updates our copy from one master.
func (a *attempt) refreshFrom(ctx context.Context, m Remote) error {
	serial, err := serialAt(ctx, a.ask, Secondary{Addr: m, Key: a.key.Name}, a.zone.Name)
	if err != nil {
		return err
	}
	if a.has && !a.force && int32(serial-a.soa.Serial) <= 0 { // RFC 1982
		return a.confirm(ctx)
	}
	if a.has && !a.force {
		err := a.transfer(ctx, m, &a.soa.Serial)
		if err == nil || ctx.Err() != nil {
			return err
		}
		a.opts.Log.Info("incremental transfer failed, transferring the whole zone", "zone", a.zone.Name.String(),
			"master", m.String(), "error", err)
	}
	return a.transfer(ctx, m, nil)
}

// transfer transfers the zone, or the difference to the serial that we have.
func (a *attempt) transfer(ctx context.Context, m Remote, has *uint32) error {
	start := time.Now()
	to, err := a.spools.begin(a.id, a.zone.Project)
	if err != nil {
		return err
	}
	defer to.end()
	c, err := a.read(ctx, request{master: m.AddrPort, tls: a.keys.tlsFor(m), zone: a.zone.Name, key: a.key, has: has,
		to: to, check: a.checkLimits})
	if err != nil {
		return err
	}
	if c.count == 1 {
		return a.confirm(ctx)
	}
	if err := a.apply(ctx, c, m.String()); err != nil {
		return err
	}
	kind := "ixfr"
	if c.whole {
		kind = "axfr"
	}
	a.stat.done.WithLabelValues(kind).Inc()
	a.opts.Log.Info("zone transferred", "zone", a.zone.Name.String(), "kind", kind, "serial", c.serial,
		"master", m.String(), "took", time.Since(start))
	return nil
}

// read reads a transfer. It returns its memory to the budget before the commit takes its own, so that no two transfers
// wait for each other.
func (a *attempt) read(ctx context.Context, r request) (*incoming, error) {
	release, err := a.opts.Budget.Take(ctx, a.zone.Project, readBytes)
	if err != nil {
		return nil, err
	}
	defer release()
	c, err := a.fetch(ctx, r)
	if err != nil {
		return nil, err
	}
	return c, c.to.Flush()
}

// expires returns when our copy becomes too old to be served.
func (a *attempt) expires() time.Time {
	return a.state.Checked.Add(time.Duration(a.soa.Expire) * time.Second)
}

// confirm stores that our copy is up to date. It does so only after a twentieth of the expire time, because each time
// is a write and the exact time does not matter.
func (a *attempt) confirm(ctx context.Context) error {
	now := time.Now().UTC()
	age := now.Sub(a.state.Checked) // negative if the clock was set back
	if !a.state.Expired && 0 <= age && age < time.Duration(a.soa.Expire)*time.Second/20 {
		return nil
	}
	a.state.Checked, a.state.Expired = now, false
	return a.save(ctx, "confirmed by a master")
}

// expire takes our copy out of service when it is too old (RFC 1035 §3.3.13). If the clock was set back, the age counts
// from now: otherwise the copy could be served for years.
func (a *attempt) expire(ctx context.Context) error {
	now := time.Now().UTC()
	switch {
	case !a.has || a.state.Expired:
		return nil
	case a.state.Checked.After(now):
		a.state.Checked = now
		return a.save(ctx, "the clock was set back")
	case now.Before(a.expires()):
		return nil
	}
	a.opts.Log.Error("zone expired: no master could be reached for too long", "zone", a.zone.Name.String(),
		"since", a.state.Checked)
	a.state.Expired = true
	return a.save(ctx, "expired")
}

func (a *attempt) save(ctx context.Context, what string) error {
	actor := store.Actor{Who: "nameplane", Project: a.zone.Project, API: "transfer"}
	return a.pub.Commit(ctx, actor, func(tx *publish.Tx) error {
		tx.Note("%s", what)
		if _, err := tx.Zone(a.id); err != nil { // the zone was deleted meanwhile: its state would never be removed
			return err
		}
		return tx.SetSecondary(a.id, a.state)
	})
}
