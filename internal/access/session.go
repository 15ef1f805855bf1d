package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Sessions are what OpenStack clients get for a password or a token. They are signed, not remembered: opening one writes
// nothing, any number of them takes no memory, and they outlive a restart, so that clients need not notice one. A session
// says only who, for which project and until when. What its holder may do is read from the user's or token's row at each
// request, so a session never has more rights than they have now, and ends with them.

// sessionPrefix differs from a token's in its fourth octet; both say what they are when they turn up in a file.
const sessionPrefix = "nps_"

// sessionLife is how long a session lasts: as long as Keystone's by default. Every OpenStack client logs in again by
// itself, so a longer life saves nothing but gives a stolen session more time.
const sessionLife = time.Hour

// maxParents bounds how many sessions may be opened each with the one before, and so the length of a session's text.
// OpenStack clients open one or two.
const maxParents = 16

// sessionBody is what is signed.
type sessionBody struct {
	ID         string   `json:"i"`
	Parents    []string `json:"a,omitempty"` // the session that opened this one, the one that opened that, and so on
	Kind       Kind     `json:"k"`
	Subject    string   `json:"s"`
	Generation int      `json:"g,omitempty"`
	Project    string   `json:"p"`
	Methods    []string `json:"m"`
	Issued     int64    `json:"t"`
	Expires    int64    `json:"e"`
}

// Issue opens a session of a principal for a project, by id or name; its own when that is empty. Only an admin may act for
// another project; for others ErrDenied is returned. A session opened with another one ends with that one, because it
// carries the ids of those before it. A principal without rights in projects gets no session: it could do nothing, and
// would outlive what opened it in somebody's cache.
func (a *Access) Issue(p Principal, project string, methods ...string) (string, Principal, error) {
	b := a.book.Load()
	if !ofProjects(p.Role) {
		return "", p, fmt.Errorf("%s has the role %s, which opens no sessions: %w", p.Who(), p.Role, ErrDenied)
	}
	if project != "" && project != p.Project.ID && project != p.Project.Name {
		other, err := b.project(project)
		if err != nil || p.Role != RoleAdmin {
			return "", p, fmt.Errorf("%s: no rights in project %.64q: %w", p.Who(), project, ErrDenied)
		}
		p.Project = other
	}
	if p.Session != "" {
		if len(p.parents) == maxParents {
			return "", p, &zone.InvalidError{Field: "auth.identity.token", Reason: fmt.Sprintf(
				"is a session opened through %d others: log in with the password or the token", maxParents)}
		}
		p.parents = append([]string{p.Session}, p.parents...)
	}
	at := now()
	until := at.Add(sessionLife)
	if !p.Expires.IsZero() && p.Expires.Before(until) {
		until = p.Expires
	}
	p.Session, p.Methods, p.Issued, p.Expires = random(tokenIDSize), methods, at, until
	body, err := json.Marshal(sessionBody{p.Session, p.parents, p.Kind, p.ID, p.generation, p.Project.ID, methods, at.Unix(),
		until.Unix()})
	if err != nil {
		return "", p, err
	}
	text := base64.RawURLEncoding.EncodeToString(body)
	return sessionPrefix + text + "." + base64.RawURLEncoding.EncodeToString(sign(b.key, text)), p, nil
}

func sign(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// session says whose session this is.
func (a *Access) session(s string) (Principal, error) {
	b := a.book.Load()
	body, err := b.open(s)
	if err != nil {
		return Principal{}, err
	}
	if time.Now().Unix() >= body.Expires {
		return Principal{}, fmt.Errorf("session %s has expired: %w", body.ID, ErrDenied)
	}
	if b.hasEnded(body) {
		return Principal{}, fmt.Errorf("session %s, or one that it was opened with, was ended: %w", body.ID, ErrDenied)
	}
	p, err := b.subject(body)
	if err != nil {
		return Principal{}, err
	}
	if body.Project != p.Project.ID {
		other, ok := b.projects[body.Project]
		if !ok || p.Role != RoleAdmin {
			return Principal{}, fmt.Errorf("session %s: no rights in its project any more: %w", body.ID, ErrDenied)
		}
		p.Project = other
	}
	p.Session, p.parents, p.Methods = body.ID, body.Parents, body.Methods
	p.Issued, p.Expires = time.Unix(body.Issued, 0).UTC(), time.Unix(body.Expires, 0).UTC()
	return p, nil
}

// open checks the signature of a session and reads it.
func (b *book) open(s string) (body sessionBody, err error) {
	text, mac, ok := strings.Cut(strings.TrimPrefix(s, sessionPrefix), ".")
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if !ok || err != nil || b.key == nil || !hmac.Equal(sum, sign(b.key, text)) {
		return body, fmt.Errorf("session is not signed by us: %w", ErrDenied)
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		return body, fmt.Errorf("session cannot be read: %w", ErrDenied)
	}
	return body, nil
}

// hasEnded reports whether a session, or one that it was opened with, was ended.
func (b *book) hasEnded(body sessionBody) bool {
	ended := func(id string) bool { _, ok := b.ended[id]; return ok }
	return ended(body.ID) || slices.ContainsFunc(body.Parents, ended)
}

// subject is the token or user of a session, as it is now.
func (b *book) subject(body sessionBody) (Principal, error) {
	if body.Kind == kindToken {
		if t := b.tokens[body.Subject]; t != nil && t.Generation == body.Generation {
			return b.tokenPrincipal(t)
		}
	} else if u, ok := b.users[body.Subject]; ok && u.Generation == body.Generation {
		return b.userPrincipal(u), nil
	}
	return Principal{}, fmt.Errorf("session %s: its %s is gone or has changed: %w", body.ID, body.Kind, ErrDenied)
}

// Bounds on how many ended sessions are remembered, and so on what users can make every change here cost.
const (
	maxEnded     = 10_000
	maxEndedEach = 500
	forgetStep   = 100 // sessions that are over and that one change forgets
)

// EndSession ends one session before its time, and those that were opened with it. It is written down, so that a restart
// does not bring it back, until the session would have ended by itself.
//
// At a bound it ends all sessions of the user or token instead, which needs no memory. To refuse would let the thief of
// a session open and end as many others, after which nobody could end the stolen one.
func (a *Access) EndSession(ctx context.Context, actor store.Actor, p Principal) error {
	// Read before the commit: all other changes would wait while ten thousand rows are read. So the bounds may be passed by
	// as many as end at the same moment.
	rows, err := publish.Read(a.pub, func(v store.View) ([]endedRow, error) {
		return store.ObjectsOf[endedRow](v, store.KindEndedSession)
	})
	if err != nil {
		return err
	}
	at := time.Now()
	own := func(r endedRow) bool { return r.Subject == p.ID }
	var past, rest []endedRow
	for _, r := range rows {
		if r.Until.Before(at) {
			past = append(past, r)
		} else {
			rest = append(rest, r)
		}
	}
	past = past[:min(len(past), forgetStep)]
	return a.change(ctx, actor, func(tx *publish.Tx) error {
		if err := forgetEnded(tx, past); err != nil {
			return err
		}
		if len(rest) < maxEnded && count(rest, own) < maxEndedEach {
			return tx.PutObject(store.KindEndedSession, p.Session, endedRow{p.Session, p.Expires, p.ID})
		}
		if err := forgetEnded(tx, slices.DeleteFunc(rest, func(r endedRow) bool { return !own(r) })); err != nil {
			return err
		}
		return endAll(tx, p)
	})
}

func count(rows []endedRow, which func(endedRow) bool) (n int) {
	for _, r := range rows {
		if which(r) {
			n++
		}
	}
	return n
}

// forgetEnded deletes rows, of which another change may have deleted some.
func forgetEnded(tx *publish.Tx, rows []endedRow) error {
	for _, r := range rows {
		if err := tx.DeleteObject(store.KindEndedSession, r.Session); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// endAll ends all sessions of a user or token. Those who have the password or the token log in again.
func endAll(tx *publish.Tx, p Principal) (err error) {
	if p.Kind == kindToken {
		var t tokenRow
		if err = tx.Object(store.KindToken, p.ID, &t); err == nil {
			t.Generation++
			err = tx.PutObject(store.KindToken, p.ID, t)
		}
	} else {
		var u userRow
		if err = tx.Object(store.KindUser, p.ID, &u); err == nil {
			u.Generation++
			err = tx.PutObject(store.KindUser, p.ID, u)
		}
	}
	if errors.Is(err, store.ErrNotFound) { // deleted at this moment, and its sessions with it
		return nil
	}
	return err
}
