package access

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/zone"
)

// Token is a credential of a program. Its text, np_ID_SECRET, is shown once.
type Token struct {
	ID       string
	Name     string
	Project  string // ID of the project
	Role     string
	App      string `json:",omitempty"` // the application instance of a token with the role app
	Created  time.Time
	Expires  time.Time // zero means never
	Revoked  time.Time // zero when not revoked
	LastUsed time.Time // precise to some minutes; zero means never

	Generation int `json:",omitempty"` // sessions of an earlier generation are invalid, see endAllSessions
}

// live reports whether the token is neither revoked nor expired.
func (t Token) live(at time.Time) bool {
	return t.Revoked.IsZero() && (t.Expires.IsZero() || at.Before(t.Expires))
}

// tokenRow is a token in the store. Its secret has 256 random bits, which cannot be guessed. So one SHA-256 protects it
// as well as a slow hash, and can be computed for thousands of requests a second.
type tokenRow struct {
	Token
	Hash []byte // SHA-256 of the secret's text
}

// TokenSpec describes a token to create.
type TokenSpec struct {
	Name    string
	Project string // ID or name
	Role    string
	App     string    // ID of an application instance, with the role app
	Expires time.Time // zero means never
}

// These are the sizes of the parts of a token before encoding. The ID is not secret; with 80 bits, IDs do not collide.
const (
	tokenIDSize     = 10
	tokenSecretSize = 32
	tokenPrefix     = "np_"
)

// The alphabet has only letters and digits: a double click selects the whole token, and no shell or URL changes it.
var alphabet = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// random returns the text of n random bytes. crypto/rand.Read does not return when the system has no randomness.
func random(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return alphabet.EncodeToString(b)
}

// parseToken splits np_ID_SECRET into its parts.
func parseToken(s string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(s, tokenPrefix)
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	ok = ok && len(id) == alphabet.EncodedLen(tokenIDSize) && len(secret) == alphabet.EncodedLen(tokenSecretSize)
	if !ok || strings.Trim(id+secret, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return "", "", false
	}
	return id, secret, true
}

// Tokens returns all tokens, oldest first. Revoked tokens are included until they are deleted.
func (a *Access) Tokens() []Token {
	var out []Token
	for _, e := range a.accounts.Load().tokens {
		t := e.Token
		if s := e.used.Load(); s > 0 {
			t.LastUsed = time.Unix(s, 0).UTC()
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(x, y Token) int {
		return cmp.Or(x.Created.Compare(y.Created), strings.Compare(x.ID, y.ID))
	})
	return out
}

// CreateToken creates a token and returns its text. The text is not stored and cannot be read again.
func (a *Access) CreateToken(ctx context.Context, actor store.Actor, spec TokenSpec) (string, Token, error) {
	t, err := a.newToken(spec)
	if err != nil {
		return "", Token{}, err
	}
	t.ID = random(tokenIDSize)
	secret := random(tokenSecretSize)
	err = a.change(ctx, actor, func(tx *publish.Tx) error {
		if err := forgetTokens(tx); err != nil {
			return err
		}
		// the project may have been deleted since newToken read it
		if err := tx.Object(store.KindProject, t.Project, &Project{}); err != nil {
			return err
		}
		return tx.PutObject(store.KindToken, t.ID, tokenRow{t, hashSecret(secret)})
	})
	if err != nil {
		return "", Token{}, err
	}
	return tokenPrefix + t.ID + "_" + secret, t, nil
}

func (a *Access) newToken(spec TokenSpec) (Token, error) {
	if err := checkName("name", spec.Name); err != nil {
		return Token{}, err
	}
	if err := checkTokenRole(spec.Role, spec.App); err != nil {
		return Token{}, err
	}
	p, err := a.Project(spec.Project)
	if err != nil {
		return Token{}, &zone.InvalidError{Field: "project", Reason: err.Error()}
	}
	if !spec.Expires.IsZero() && !spec.Expires.After(time.Now()) {
		return Token{}, &zone.InvalidError{Field: "expires", Reason: "must be in the future"}
	}
	return Token{Name: spec.Name, Project: p.ID, Role: spec.Role, App: spec.App, Created: now(),
		Expires: spec.Expires.UTC()}, nil
}

// forgetAfter is how long an expired or revoked token stays listed, so that users can see what it was.
const forgetAfter = 30 * 24 * time.Hour

func forgetTokens(tx *publish.Tx) error {
	long := now().Add(-forgetAfter)
	return deleteTokens(tx, func(t Token) bool {
		return !t.Revoked.IsZero() && t.Revoked.Before(long) || !t.Expires.IsZero() && t.Expires.Before(long)
	})
}

func deleteTokens(tx *publish.Tx, which func(Token) bool) error {
	rows, err := store.ObjectsOf[tokenRow](tx.View, store.KindToken)
	for _, t := range rows {
		if err == nil && which(t.Token) {
			err = tx.DeleteObject(store.KindToken, t.ID)
		}
	}
	return err
}

// RevokeToken revokes a token and ends every session opened with it. Revoking it again is not an error.
func (a *Access) RevokeToken(ctx context.Context, actor store.Actor, id string) error {
	return a.change(ctx, actor, func(tx *publish.Tx) error {
		var t tokenRow
		if err := tx.Object(store.KindToken, id, &t); err != nil {
			return err
		}
		if !t.Revoked.IsZero() {
			return nil
		}
		if t.Role == RoleAdmin && t.live(now()) {
			if err := otherAdmin(tx, id); err != nil {
				return err
			}
		}
		t.Revoked = now()
		return tx.PutObject(store.KindToken, id, t)
	})
}

// otherAdmin returns nil when there is an admin other than the token or user with this ID, and ErrLastAdmin otherwise.
func otherAdmin(tx *publish.Tx, id string) error {
	b, err := readRows(tx.View)
	if err == nil && !b.hasAdmin(id) {
		err = ErrLastAdmin
	}
	return err
}

// Authenticate returns the principal that presents this token or session, or ErrDenied.
func (a *Access) Authenticate(text string) (Principal, error) {
	if strings.HasPrefix(text, sessionPrefix) {
		return a.session(text)
	}
	id, secret, ok := parseToken(text)
	if !ok {
		return Principal{}, fmt.Errorf("does not have the form of a token: %w", ErrDenied)
	}
	return a.Credential(id, secret)
}

// Credential is Authenticate for the two parts of a token, in the form of an application credential. The secret may
// also be the whole token, because that is the text that people have.
func (a *Access) Credential(id, secret string) (Principal, error) {
	if whole, s, ok := parseToken(secret); ok && whole == id {
		secret = s
	}
	b := a.accounts.Load()
	t := b.tokens[id]
	if t == nil {
		return Principal{}, fmt.Errorf("token %.16q is not known: %w", id, ErrDenied)
	}
	if subtle.ConstantTimeCompare(hashSecret(secret), t.Hash) != 1 {
		return Principal{}, fmt.Errorf("token %s: wrong secret: %w", id, ErrDenied)
	}
	return b.tokenPrincipal(t)
}

func (b *accounts) tokenPrincipal(t *tokenEntry) (Principal, error) {
	at := time.Now()
	if !t.live(at) {
		return Principal{}, fmt.Errorf("token %s (%s) has expired or was revoked: %w", t.ID, t.Name, ErrDenied)
	}
	if s := at.Unix(); t.used.Load() != s {
		t.used.Store(s) // at most once a second, because the cores share this cache line
	}
	return Principal{Kind: kindToken, ID: t.ID, Name: t.Name, Project: b.projects[t.Project], Role: t.Role, App: t.App,
		Issued: t.Created, Expires: t.Expires, generation: t.Generation}, nil
}

func hashSecret(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}
