// Package access says who may act: users, projects, roles and tokens, and the sessions that are issued on them.
package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// Options of an Access; the zero value works.
type Options struct {
	Log *slog.Logger // default: none

	// Hash is how new passwords are hashed; default 19 MiB, two passes (OWASP's first choice for argon2id).
	Hash HashParams
}

// Access holds all rows in memory, in an immutable book that is replaced after each change: to authenticate a request
// costs a hash and no store transaction.
type Access struct {
	pub    *publish.Publisher
	opts   Options
	book   atomic.Pointer[book]
	hasher *hasher
	logins throttle // failed passwords, by user
	addrs  throttle // failed passwords, by address
}

// ErrDenied says that credentials are not good. The text around it is for the log, not for the caller.
var ErrDenied = errors.New("credentials are not valid")

// ErrLastAdmin says that a change would leave nobody who can make the next one.
var ErrLastAdmin = errors.New("this is the last valid admin token or user: make another first")

// ErrInUse says that a project still owns something.
var ErrInUse = errors.New("project is in use")

// Open reads the rows of a store, and makes the key that sessions are signed with when there is none. The publisher
// must be running.
func Open(ctx context.Context, pub *publish.Publisher, opts Options) (*Access, error) {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.Hash = cmp.Or(opts.Hash, HashParams{Memory: 19 << 10, Passes: 2, Lanes: 1})
	a := &Access{pub: pub, opts: opts, hasher: newHasher(opts.Hash)}
	a.logins = throttle{free: 10, first: time.Second, longest: 30 * time.Second}
	a.addrs = throttle{free: 20, first: time.Second, longest: time.Minute} // several people may share one
	if err := a.reload(); err != nil {
		return nil, err
	}
	if a.book.Load().key != nil {
		return a, nil
	}
	key := make([]byte, 32)
	rand.Read(key) //nolint:errcheck // never fails
	err := a.change(ctx, startActor, func(tx *publish.Tx) error {
		return tx.PutObject(store.KindSessionKey, "1", keyRow{key})
	})
	if err != nil {
		return nil, fmt.Errorf("make the session key: %w", err)
	}
	return a, nil
}

// book is everything about access at one moment.
type book struct {
	tokens     map[string]*tokenEntry
	users      map[string]userRow
	userIDs    map[string]string // by name
	projects   map[string]Project
	projectIDs map[string]string    // by name
	ended      map[string]time.Time // sessions ended early, and when they would have ended anyway
	key        []byte
}

// tokenEntry is a token and when it was last used. The time outlives the book, so that counting needs no new one.
type tokenEntry struct {
	tokenRow
	used *atomic.Int64 // unix seconds
}

type keyRow struct{ Key []byte }

type endedRow struct {
	Session string
	Until   time.Time
	Subject string // id of the token or user
}

// reload reads the book again. An older book never replaces a newer one: the rows are read after the book that they
// replace, and are read again when another book has replaced it.
//
// It is not done in publish.Tx.OnDone: all other edits would wait for ten thousand rows.
func (a *Access) reload() error {
	for {
		old := a.book.Load()
		b, err := a.readBook(old)
		if err != nil || a.book.CompareAndSwap(old, b) {
			return err
		}
	}
}

// readBook reads a book, with the times of last use of the one before.
func (a *Access) readBook(old *book) (*book, error) {
	b, err := publish.Read(a.pub, readRows)
	if err != nil {
		return nil, fmt.Errorf("read tokens and users: %w", err)
	}
	for id, t := range b.tokens {
		if old != nil && old.tokens[id] != nil {
			t.used = old.tokens[id].used
			continue
		}
		t.used = new(atomic.Int64)
		if !t.LastUsed.IsZero() {
			t.used.Store(t.LastUsed.Unix())
		}
	}
	return b, nil
}

// readRows reads a book without the times of last use.
func readRows(v store.View) (*book, error) {
	b := &book{tokens: map[string]*tokenEntry{}, users: map[string]userRow{}, userIDs: map[string]string{},
		projects: map[string]Project{}, projectIDs: map[string]string{}, ended: map[string]time.Time{}}
	tokens, err := store.ObjectsOf[tokenRow](v, store.KindToken)
	for _, t := range tokens {
		b.tokens[t.ID] = &tokenEntry{tokenRow: t}
	}
	users, err2 := store.ObjectsOf[userRow](v, store.KindUser)
	for _, u := range users {
		b.users[u.ID] = u
		b.userIDs[u.Name] = u.ID
	}
	projects, err3 := store.ObjectsOf[Project](v, store.KindProject)
	for _, p := range projects {
		b.projects[p.ID] = p
		b.projectIDs[p.Name] = p.ID
	}
	ended, err4 := store.ObjectsOf[endedRow](v, store.KindEndedSession)
	for _, e := range ended {
		b.ended[e.Session] = e.Until
	}
	keys, err5 := store.ObjectsOf[keyRow](v, store.KindSessionKey)
	if len(keys) > 0 {
		b.key = keys[0].Key
	}
	return b, errors.Join(err, err2, err3, err4, err5)
}

// change commits fn and reads the book again, so that the change holds when change returns.
func (a *Access) change(ctx context.Context, actor store.Actor, fn func(*publish.Tx) error) error {
	if err := a.pub.Commit(ctx, actor, fn); err != nil {
		return err
	}
	return a.reload()
}

// useInterval is how often the times of last use are written: coarse, because a commit per request would cost more than
// the request.
const useInterval = 5 * time.Minute

// Run writes down, now and then, when tokens were last used, until ctx ends.
func (a *Access) Run(ctx context.Context) error {
	tick := time.NewTicker(useInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := a.writeUses(ctx); err != nil && ctx.Err() == nil {
				a.opts.Log.Warn("last use of tokens not written", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *Access) writeUses(ctx context.Context) error {
	used := map[string]time.Time{}
	for id, t := range a.book.Load().tokens {
		if s := t.used.Load(); s > 0 && s != t.LastUsed.Unix() {
			used[id] = time.Unix(s, 0).UTC()
		}
	}
	if len(used) == 0 {
		return nil
	}
	return a.change(ctx, store.Actor{Who: "nameplane", API: "access"}, func(tx *publish.Tx) error {
		for id, at := range used {
			var t tokenRow
			err := tx.Object(store.KindToken, id, &t)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			t.LastUsed = at
			if err := tx.PutObject(store.KindToken, id, t); err != nil {
				return err
			}
		}
		return nil
	})
}
