// Package access authenticates callers: it stores users, projects, roles and tokens, and issues sessions to them.
//
// Start with Access in access.go, then Authenticate in token.go, which checks tokens and sessions (session.go). user.go
// checks passwords, jwt.go the JWTs of other issuers, and admin.go creates the first admin token.
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

// Options configures an Access. The zero value works.
type Options struct {
	Log *slog.Logger // discards messages by default

	// Hash has the costs of hashing new passwords. The default is 19 MiB and two passes (OWASP's first choice for
	// argon2id).
	Hash HashParams
}

// Access holds all accounts in memory, in an immutable value that is replaced after each change. So authenticating a
// request costs a hash, but no store transaction.
type Access struct {
	pub      *publish.Publisher
	opts     Options
	accounts atomic.Pointer[accounts]
	hasher   *hasher
	logins   *throttle // failed passwords by user
	addrs    *throttle // failed passwords by address
}

// ErrDenied reports that credentials are not valid. The text around it is for the log, not for the client.
var ErrDenied = errors.New("credentials are not valid")

// ErrEnded reports a session or JWT that was valid earlier. It is an ErrDenied. Clients log in again when they get it,
// so it must stay apart from the credentials of a client that guesses.
var ErrEnded error = endedError{}

type endedError struct{}

func (endedError) Error() string        { return "credentials are no longer valid" }
func (endedError) Is(target error) bool { return target == ErrDenied }

// ErrLastAdmin reports that a change would leave no admin who could make the next change.
var ErrLastAdmin = errors.New("this is the last valid admin token or user: make another first")

// ErrInUse reports that a project still owns something.
var ErrInUse = errors.New("project is in use")

// Open reads the accounts of a store, and creates the key that signs sessions when there is none. The publisher must be
// running.
func Open(ctx context.Context, pub *publish.Publisher, opts Options) (*Access, error) {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.Hash = cmp.Or(opts.Hash, HashParams{Memory: 19 << 10, Passes: 2, Lanes: 1})
	a := &Access{pub: pub, opts: opts, hasher: newHasher(opts.Hash)}
	a.logins = &throttle{free: 10, first: time.Second, longest: 30 * time.Second}
	a.addrs = perAddress()
	if err := a.reload(); err != nil {
		return nil, err
	}
	if a.accounts.Load().key != nil {
		return a, nil
	}
	key := make([]byte, 32)
	rand.Read(key)
	err := a.change(ctx, startActor, func(tx *publish.Tx) error {
		return tx.PutObject(store.KindSessionKey, "1", keyRow{key})
	})
	if err != nil {
		return nil, fmt.Errorf("create the session key: %w", err)
	}
	return a, nil
}

// accounts is the state of all accounts at one moment. It is immutable.
type accounts struct {
	tokens     map[string]*tokenEntry
	users      map[string]userRow
	userIDs    map[string]string // IDs by name
	projects   map[string]Project
	projectIDs map[string]string    // IDs by name
	ended      map[string]time.Time // sessions that were ended early, with the time at which they would have expired
	key        []byte
}

// tokenEntry is a token with the time of its last use. The time is shared by successive states, so a use needs no new
// state.
type tokenEntry struct {
	tokenRow
	used *atomic.Int64 // Unix seconds
}

type keyRow struct{ Key []byte }

// endedRow is the row of a session that was ended before it expired.
type endedRow struct {
	Session string
	Until   time.Time
	Subject string // ID of the token or user
}

// reload reads the accounts again. An older state never replaces a newer one: the rows are read after the current state
// was loaded, and are read again when another reload has replaced that state meanwhile.
//
// reload does not run in publish.Tx.OnDone: all other edits would wait while ten thousand rows are read.
func (a *Access) reload() error {
	for {
		old := a.accounts.Load()
		b, err := a.readAccounts(old)
		if err != nil || a.accounts.CompareAndSwap(old, b) {
			return err
		}
	}
}

// readAccounts reads the accounts, and keeps the times of last use of the previous state.
func (a *Access) readAccounts(old *accounts) (*accounts, error) {
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

// readRows reads the accounts without the times of last use.
func readRows(v store.View) (*accounts, error) {
	b := &accounts{tokens: map[string]*tokenEntry{}, users: map[string]userRow{}, userIDs: map[string]string{},
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

// change commits fn and reads the accounts again, so that the change is in effect when change returns.
func (a *Access) change(ctx context.Context, actor store.Actor, fn func(*publish.Tx) error) error {
	if err := a.pub.Commit(ctx, actor, fn); err != nil {
		return err
	}
	return a.reload()
}

// useInterval is how often the times of last use are written. It is coarse, because a commit for each request would
// cost more than the request.
const useInterval = 5 * time.Minute

// Run stores the times of last use of tokens every useInterval, until ctx ends.
func (a *Access) Run(ctx context.Context) error {
	tick := time.NewTicker(useInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := a.writeUses(ctx); err != nil && ctx.Err() == nil {
				a.opts.Log.Warn("the last use of tokens was not written", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (a *Access) writeUses(ctx context.Context) error {
	used := map[string]time.Time{}
	for id, t := range a.accounts.Load().tokens {
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
