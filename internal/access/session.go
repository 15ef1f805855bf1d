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

// OpenStack clients exchange a password or a token for a session. Sessions are signed, not stored. So opening one
// writes nothing, any number of them takes no memory, and they survive a restart. A session contains only the subject,
// the project and the expiry. The rights of its holder are read from the row of the user or token at each request. So a
// session never has more rights than they have now, and ends with them.

// sessionPrefix differs from the prefix of a token in its fourth byte. Both identify the kind of secret when it is
// found in a file.
const sessionPrefix = "nps_"

// sessionLife is the lifetime of a session, the same as Keystone's default. OpenStack clients log in again
// automatically, so a longer life would save nothing, but would give a stolen session more time.
const sessionLife = time.Hour

// maxParents bounds how long a chain of sessions can be, where each was opened with the previous one. So it bounds the
// length of a session's text. OpenStack clients open one or two.
const maxParents = 16

// sessionBody is the signed content of a session.
type sessionBody struct {
	ID string `json:"i"`
	// the session that opened this one, the session that opened that one, and so on
	Parents    []string `json:"a,omitempty"`
	Kind       Kind     `json:"k"`
	Subject    string   `json:"s"`
	Generation int      `json:"g,omitempty"`
	Project    string   `json:"p"`
	System     bool     `json:"y,omitempty"`
	Methods    []string `json:"m"`
	Issued     int64    `json:"t"`
	Expires    int64    `json:"e"`
}

// Issue opens a session of a principal for a project, which is given by ID or name; empty means the principal's own
// project. Only an admin may act for another project; other principals get ErrDenied.
//
// A session that was opened with another session ends with that one, because it contains the IDs of its parents. A
// principal without rights in projects gets no session: the session could do nothing, and a client could cache it
// longer than the credential is valid.
func (a *Access) Issue(p Principal, project string, methods ...string) (string, Principal, error) {
	b := a.accounts.Load()
	if !ofProjects(p.Role) {
		return "", p, fmt.Errorf("%s has the role %s, which cannot open sessions: %w", p.Who(), p.Role, ErrDenied)
	}
	if p.System && p.Role != RoleAdmin {
		return "", p, fmt.Errorf("%s: no rights in the system scope: %w", p.Who(), ErrDenied)
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
	body, err := json.Marshal(sessionBody{p.Session, p.parents, p.Kind, p.ID, p.generation, p.Project.ID, p.System,
		methods, at.Unix(), until.Unix()})
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

// session authenticates a session.
func (a *Access) session(s string) (Principal, error) {
	b := a.accounts.Load()
	body, err := b.open(s)
	if err != nil {
		return Principal{}, err
	}
	if time.Now().Unix() >= body.Expires {
		return Principal{}, fmt.Errorf("session %s has expired: %w", body.ID, ErrEnded)
	}
	if b.hasEnded(body) {
		return Principal{}, fmt.Errorf("session %s, or one of its parents, was ended: %w", body.ID, ErrEnded)
	}
	p, err := b.subject(body)
	if err != nil {
		return Principal{}, err
	}
	if body.Project != p.Project.ID {
		other, ok := b.projects[body.Project]
		if !ok || p.Role != RoleAdmin {
			return Principal{}, fmt.Errorf("session %s: no longer has rights in its project: %w", body.ID, ErrEnded)
		}
		p.Project = other
	}
	if body.System && p.Role != RoleAdmin {
		return Principal{}, fmt.Errorf("session %s: no longer has rights in the system scope: %w", body.ID, ErrEnded)
	}
	p.Session, p.parents, p.Methods, p.System = body.ID, body.Parents, body.Methods, body.System
	p.Issued, p.Expires = time.Unix(body.Issued, 0).UTC(), time.Unix(body.Expires, 0).UTC()
	return p, nil
}

// open checks the signature of a session and parses its body.
func (b *accounts) open(s string) (body sessionBody, err error) {
	text, mac, ok := strings.Cut(strings.TrimPrefix(s, sessionPrefix), ".")
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if !ok || err != nil || b.key == nil || !hmac.Equal(sum, sign(b.key, text)) {
		return body, fmt.Errorf("session has no valid signature: %w", ErrDenied)
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

// hasEnded reports whether a session, or one of its parents, was ended.
func (b *accounts) hasEnded(body sessionBody) bool {
	ended := func(id string) bool { _, ok := b.ended[id]; return ok }
	return ended(body.ID) || slices.ContainsFunc(body.Parents, ended)
}

// subject returns the token or user of a session, with its current rights.
func (b *accounts) subject(body sessionBody) (Principal, error) {
	if body.Kind == kindToken {
		if t := b.tokens[body.Subject]; t != nil && t.Generation == body.Generation {
			return b.tokenPrincipal(t)
		}
	} else if u, ok := b.users[body.Subject]; ok && u.Generation == body.Generation {
		return b.userPrincipal(u), nil
	}
	return Principal{}, fmt.Errorf("session %s: its %s was deleted or has changed: %w", body.ID, body.Kind, ErrEnded)
}

// These constants bound how many ended sessions are stored, and so the cost that users can cause for every change here.
const (
	maxEnded     = 10_000
	maxEndedEach = 500
	forgetStep   = 100 // expired sessions that one change deletes
)

// EndSession ends a session before it expires, and the sessions that were opened with it. The end is stored until the
// session would have expired, so that it survives a restart.
//
// At a limit, EndSession ends all sessions of the user or token instead, which needs no memory. It must not refuse: the
// thief of a session could open and end as many others as the limit permits, and nobody could end the stolen session
// then.
func (a *Access) EndSession(ctx context.Context, actor store.Actor, p Principal) error {
	// Read the rows before the commit: inside it, all other changes would wait while ten thousand rows are read. So
	// concurrent calls can exceed the limits by their number.
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
		return endAllSessions(tx, p)
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

// forgetEnded deletes rows. Another change may have deleted some of them already.
func forgetEnded(tx *publish.Tx, rows []endedRow) error {
	for _, r := range rows {
		if err := tx.DeleteObject(store.KindEndedSession, r.Session); err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// endAllSessions ends all sessions of a user or token. Clients that have the password or the token can log in again.
func endAllSessions(tx *publish.Tx, p Principal) (err error) {
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
	if errors.Is(err, store.ErrNotFound) { // deleted in the meantime, together with its sessions
		return nil
	}
	return err
}
