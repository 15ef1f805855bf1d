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

// expiryRow leads from a time to the rule that ends then, or to the task that is deleted then.
type expiryRow struct {
	App  string `json:"a"`
	Rule string `json:"r,omitempty"`
	Task string `json:"t,omitempty"`

	id string // of the row
}

// keepTask is how long a task is kept after its end.
const keepTask = 7 * 24 * time.Hour

// expiryID sorts by time. NUL is in no id, so two rules never share one.
func expiryID(r Rule) string {
	return fmt.Sprintf("%016x\x00%s\x00%s", uint64(r.ExpiresAt.UnixMicro()), r.App, r.ID)
}

func taskExpiryID(t Task) string {
	return fmt.Sprintf("%016x\x00\x00%s", uint64(t.Ended.Add(keepTask).UnixMicro()), t.ID)
}

// expiryBatch is how many rules one commit ends, so that other edits need not wait for thousands.
const expiryBatch = 256

// due lists rules whose time has come, the longest ended first, and tells when the next one ends: zero when none will.
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

// expire removes the rules and tasks whose time has come.
func (s *Service) expire(ctx context.Context) error {
	for {
		rows, _, err := s.due(time.Now())
		if err != nil || len(rows) == 0 {
			return err
		}
		err = s.commit(ctx, own, func(e *edit) error {
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
					continue // prolonged in the meantime
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

// forgetTask deletes a task whose time is over, if it still exists.
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

// forget deletes an object that may be gone already.
func (e *edit) forget(kind store.Kind, id string) error {
	if err := e.tx.DeleteObject(kind, id); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return nil
}

// Timers run on the monotonic clock and rules end by the wall clock: lookAgain is how late a rule may end after somebody
// has set the clock. A store that takes no changes is asked again after retryStore.
const (
	lookAgain  = time.Minute
	retryStore = time.Second
)

func (s *Service) runExpiry(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := s.expires.wait()
		wait, err := s.expireAndLook(ctx)
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Warn("expired rules are still served", "error", err)
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

// expireAndLook removes what has expired and tells when to do so again.
func (s *Service) expireAndLook(ctx context.Context) (time.Duration, error) {
	if err := s.expire(ctx); err != nil {
		return 0, err
	}
	now := time.Now()
	rows, next, err := s.due(now)
	switch {
	case err != nil:
		return 0, err
	case len(rows) > 0: // since expire has looked
		return 0, nil
	case next.IsZero():
		return lookAgain, nil
	}
	return min(lookAgain, next.Sub(now)), nil
}
