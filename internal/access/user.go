package access

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// User is a person, or a program that can only use names and passwords.
type User struct {
	ID      string
	Name    string
	Project string // ID of the project
	Role    string
	Created time.Time
	Changed time.Time // when the password was last set

	// Generation grows with each new password and in endAllSessions. Sessions of an earlier generation are invalid.
	Generation int
}

// userRow is a user in the store.
type userRow struct {
	User
	Password string // encoded hash, see encodeHash
}

// UserSpec describes a user to create.
type UserSpec struct {
	Name     string
	Password string
	Project  string // ID or name
	Role     string
}

// Users returns all users, sorted by name.
func (a *Access) Users() []User {
	var out []User
	for _, u := range a.accounts.Load().users {
		out = append(out, u.User)
	}
	slices.SortFunc(out, func(x, y User) int { return strings.Compare(x.Name, y.Name) })
	return out
}

// CreateUser creates a user.
func (a *Access) CreateUser(ctx context.Context, actor store.Actor, spec UserSpec) (User, error) {
	if err := checkName("name", spec.Name); err != nil {
		return User{}, err
	}
	if err := checkUserRole(spec.Role); err != nil {
		return User{}, err
	}
	p, err := a.Project(spec.Project)
	if err != nil {
		return User{}, &zone.InvalidError{Field: "project", Reason: err.Error()}
	}
	hash, err := a.hashNew(ctx, spec.Password)
	if err != nil {
		return User{}, err
	}
	u := User{ID: newID(), Name: spec.Name, Project: p.ID, Role: spec.Role, Created: now(), Changed: now(), Generation: 1}
	err = a.change(ctx, actor, func(tx *publish.Tx) error { return putNewUser(tx, userRow{u, hash}) })
	return u, err
}

func putNewUser(tx *publish.Tx, u userRow) error {
	if err := tx.Object(store.KindProject, u.Project, &Project{}); err != nil {
		return err
	}
	all, err := store.ObjectsOf[userRow](tx.View, store.KindUser)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(o userRow) bool { return o.Name == u.Name }) {
		return fmt.Errorf("user %q: %w", u.Name, store.ErrExists)
	}
	return tx.PutObject(store.KindUser, u.ID, u)
}

func (a *Access) hashNew(ctx context.Context, password string) (string, error) {
	if len(password) < minPassword || len(password) > maxPassword {
		return "", &zone.InvalidError{Field: "password", Reason: "must be 8 to 1024 bytes long"}
	}
	if _, _, ok := parseToken(password); ok {
		return "", &zone.InvalidError{Field: "password", Reason: "must not have the form of a token"}
	}
	return a.hasher.hash(ctx, password)
}

// SetPassword sets a new password of a user and ends all sessions of the old one.
func (a *Access) SetPassword(ctx context.Context, actor store.Actor, id, password string) (User, error) {
	hash, err := a.hashNew(ctx, password)
	if err != nil {
		return User{}, err
	}
	var u userRow
	err = a.change(ctx, actor, func(tx *publish.Tx) error {
		if err := tx.Object(store.KindUser, id, &u); err != nil {
			return err
		}
		u.Password, u.Changed = hash, now()
		u.Generation++
		return tx.PutObject(store.KindUser, id, u)
	})
	return u.User, err
}

// DeleteUser deletes a user and ends all its sessions.
func (a *Access) DeleteUser(ctx context.Context, actor store.Actor, id string) error {
	return a.change(ctx, actor, func(tx *publish.Tx) error {
		var u userRow
		if err := tx.Object(store.KindUser, id, &u); err != nil {
			return err
		}
		if u.Role == RoleAdmin {
			if err := otherAdmin(tx, id); err != nil {
				return err
			}
		}
		return tx.DeleteObject(store.KindUser, id)
	})
}

// ThrottledError reports that a user failed to log in too often, and how long logins of the user must wait.
type ThrottledError struct{ Wait time.Duration }

func (e *ThrottledError) Error() string {
	return fmt.Sprintf("too many failed logins: try again in %s", e.Wait.Round(time.Second))
}

// Password authenticates a user by name (or ID) and password, or returns ErrDenied.
//
// A token may be used as the password, when the user is the token's name or ID. So every OpenStack client works with a
// token, and no user must be created for it: the first start creates a token named admin and no user. Such a login is
// not throttled, because a token cannot be guessed.
//
// Failures are counted by user and by address, separately, because an attacker guesses from many addresses or tries
// many users. The cost is that an attacker can keep a user from logging in; sessions and tokens are not affected.
// Loopback addresses are not counted: behind a proxy on this machine, all clients have one.
func (a *Access) Password(ctx context.Context, from netip.Addr, user, password string) (Principal, error) {
	if id, secret, ok := parseToken(password); ok {
		p, err := a.Credential(id, secret)
		if err != nil {
			return p, err
		}
		if user != p.Name && user != p.ID {
			return Principal{}, fmt.Errorf("token %s is not of user %.64q: %w", id, user, ErrDenied)
		}
		return p, nil
	}
	if len(user) > 4*maxName { // no user has such a name, and counting its failures would keep it in memory
		return Principal{}, fmt.Errorf("user %.64q: the name is too long: %w", user, ErrDenied)
	}
	b := a.accounts.Load()
	u, known := b.users[b.userIDs[user]]
	if !known {
		u, known = b.users[user]
	}
	key := u.ID
	if !known {
		// Unknown users take as long and are throttled alike. Otherwise the difference would show which users exist.
		u.Password, key = a.hasher.dummy, "?"+user
	}
	addr := network(from)
	if !from.IsValid() || from.Unmap().IsLoopback() {
		addr = ""
	}
	// Refuse clients that must wait before they enter the queue for a slot.
	if wait := max(a.logins.wait(key), a.addrs.wait(addr)); wait > 0 {
		return Principal{}, &ThrottledError{wait}
	}
	done, err := a.hasher.acquire(ctx)
	if err != nil {
		return Principal{}, err
	}
	defer done()
	if wait := a.attempt(key, addr); wait > 0 {
		return Principal{}, &ThrottledError{wait}
	}
	ok := false
	if len(password) <= maxPassword {
		if ok, err = checkPassword(password, u.Password); err != nil {
			return Principal{}, err
		}
	}
	if !ok || !known {
		return Principal{}, fmt.Errorf("user %.64q: wrong name or password: %w", user, ErrDenied)
	}
	a.logins.succeeded(key)
	a.addrs.undo(addr)
	return b.userPrincipal(u), nil
}

// attempt counts a login before its password is hashed, or returns how long to wait. The caller holds a slot of the
// hasher, so at most two logins at a time are counted without a result. So a user who opens many sessions at once with
// the right password is not throttled.
func (a *Access) attempt(key, addr string) time.Duration {
	if addr != "" {
		if wait := a.addrs.attempt(addr); wait > 0 {
			return wait
		}
	}
	wait := a.logins.attempt(key)
	if wait > 0 {
		a.addrs.undo(addr)
	}
	return wait
}

func (b *accounts) userPrincipal(u userRow) Principal {
	return Principal{Kind: kindUser, ID: u.ID, Name: u.Name, Project: b.projects[u.Project], Role: u.Role,
		Issued: time.Now(), generation: u.Generation}
}
