package mec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nameplane/nameplane/internal/store"
)

// expiryRow is the value under a time: the rule that expires, or the task that is deleted, at that time.
type expiryRow struct {
	App  string `json:"a"`
	Rule string `json:"r,omitempty"`
	Task string `json:"t,omitempty"`

	id string // the key of the row
}

// keepTask is how long an ended task can still be read.
const keepTask = 7 * 24 * time.Hour

// expiryID returns a key that sorts by time. Ids never contain NUL, so no two rules have the same key.
func expiryID(r Rule) string {
	return fmt.Sprintf("%016x\x00%s\x00%s", uint64(r.ExpiresAt.UnixMicro()), r.App, r.ID)
}

func taskExpiryID(t Task) string {
	return fmt.Sprintf("%016x\x00\x00%s", uint64(t.Ended.Add(keepTask).UnixMicro()), t.ID)
}

// expiryBatch bounds the rules that one commit removes, so that other edits do not wait for thousands.
const expiryBatch = 256

// due returns up to expiryBatch rows that have expired, oldest first. If it returns all of them, next is the time of
// the next expiry, or zero when there is none.
func (s *Service) due(now time.Time) (rows []expiryRow, next time.Time, err error) {
	err = s.pub.View(func(v store.View) error {
		return v.EachObject(store.KindMECExpiry, func(id string, value []byte) (bool, error) {
			var micros int64
			if _, err := fmt.Sscanf(id, "%16x", &micros); err != nil {
				return false, fmt.Errorf("expiry row %q: %w", id, err)
			}
			if at := time.UnixMicro(micros); at.After(now) {
				next = at
				return false, nil
			}
			row := expiryRow{id: id}
			if err := json.Unmarshal(value, &row); err != nil {
				return false, err
			}
			rows = append(rows, row)
			return len(rows) < expiryBatch, nil
		})
	})
	return rows, next, err
}

// expire removes the rules and tasks that have expired.
func (s *Service) expire(ctx context.Context) error {
	for {
		rows, _, err := s.due(time.Now())
		if err != nil || len(rows) == 0 {
			return err
		}
		err = s.commit(ctx, ownActor, func(e *edit) error {
			e.tx.Note("rules have expired")
			for _, row := range rows {
				if row.Task != "" {
					if err := e.forgetTask(row); err != nil {
						return err
					}
					continue
				}
				r, err := readRule(e.tx.View, row.App, row.Rule)
				if errors.Is(err, store.ErrNotFound) {
					continue // deleted in the meantime
				}
				if err != nil {
					return err
				}
				if r.ExpiresAt.IsZero() || r.ExpiresAt.After(e.tx.Now()) {
					continue // extended in the meantime
				}
				if err := e.deleteRule(r, ruleExpired); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("remove expired rules: %w", err)
		}
		if len(rows) < expiryBatch {
			return nil
		}
	}
}

// forgetTask deletes an expired task, if it still exists.
func (e *edit) forgetTask(row expiryRow) error {
	if err := e.forget(store.KindMECExpiry, row.id); err != nil {
		return err
	}
	if err := e.forget(store.KindMECTask, row.Task); err != nil {
		return err
	}
	a, err := e.app(row.App)
	if err != nil {
		return err
	}
	if i := slices.Index(a.Tasks, row.Task); i >= 0 {
		a.Tasks, a.dirty = slices.Delete(a.Tasks, i, i+1), true
	}
	return nil
}

// forget deletes an object. It is no error if the object does not exist.
func (e *edit) forget(kind store.Kind, id string) error {
	if err := e.tx.DeleteObject(kind, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// Timers run on the monotonic clock, but rules expire by the wall clock. maxExpiryWait bounds how late a rule can
// expire after an administrator has set the wall clock. retryStore is the wait before a new attempt when the store
// accepts no changes.
const (
	maxExpiryWait = time.Minute
	retryStore    = time.Second
)

// runExpiry removes rules and tasks when they expire, until ctx ends.
func (s *Service) runExpiry(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := s.expires.wait()
		wait, err := s.expireDue(ctx)
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("expired rules could not be removed and are still served", "error", err)
			sleep(ctx, retryStore)
			continue
		}
		select {
		case <-time.After(wait):
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// expireDue removes everything that has expired and returns how long to wait for the next expiry.
func (s *Service) expireDue(ctx context.Context) (time.Duration, error) {
	if err := s.expire(ctx); err != nil {
		return 0, err
	}
	now := time.Now()
	rows, next, err := s.due(now)
	switch {
	case err != nil:
		return 0, err
	case len(rows) > 0: // expired after expire has returned
		return 0, nil
	case next.IsZero():
		return maxExpiryWait, nil
	}
	return min(maxExpiryWait, next.Sub(now)), nil
}
