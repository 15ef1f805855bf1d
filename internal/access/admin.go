package access

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/nameplane/nameplane/internal/publish"
	"github.com/nameplane/nameplane/internal/store"
)

// AdminFile is the name of the file in the data directory that holds the first token.
const AdminFile = "admin.token"

// adminName is the name of the first project and of its token, and so the user name that goes with it.
const adminName = "admin"

var startActor = store.Actor{Who: "nameplane", API: "start"}

// EnsureAdmin sees to it that somebody can manage the server. Whoever owns the data directory owns the server, so the
// file in it is believed, unless the store knows better:
//
//   - no file, no admin in the store: the first start. A token is made and written to DIR/admin.token.
//   - the file holds a token that the store does not know, and the store has no admin: a first start that was cut off, or
//     a new store. The token in the file becomes the admin token.
//   - the file holds a dead token, and the store has no admin any more: a new token replaces it.
//   - an admin exists: nothing is changed. When the file holds another or a dead token, that is logged.
//   - the file holds no token at all: an error, because it may be somebody's mistake and is not ours to overwrite.
//
// The token itself is never logged.
func (a *Access) EnsureAdmin(ctx context.Context, dir string) error {
	path := filepath.Join(dir, AdminFile)
	id, secret, err := readToken(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b := a.book.Load()
	known := b.tokens[id]
	switch {
	case b.hasAdmin(""):
		if id != "" {
			if _, err := a.Credential(id, secret); err != nil {
				a.opts.Log.Warn("the token in the file is not valid here; delete the file or put a valid token there",
					"file", path, "reason", err)
			}
		}
		return nil
	case id != "" && known == nil:
		return a.adopt(ctx, id, secret)
	}
	return a.newAdmin(ctx, dir)
}

// newAdmin makes an admin token and writes it to DIR/admin.token, in place of what is there. It is the way back in for
// the owner of the data directory when all tokens are lost.
func (a *Access) newAdmin(ctx context.Context, dir string) error {
	id, secret := random(tokenIDSize), random(tokenSecretSize)
	// The file first: when we are cut off in between, the next start finds a token to adopt, not one that nobody knows.
	if err := writeToken(filepath.Join(dir, AdminFile), tokenPrefix+id+"_"+secret+"\n"); err != nil {
		return err
	}
	a.opts.Log.Info("admin token written", "file", filepath.Join(dir, AdminFile), "token", id)
	return a.adopt(ctx, id, secret)
}

// adopt makes an admin token of a known secret, and the admin project when there is none.
func (a *Access) adopt(ctx context.Context, id, secret string) error {
	return a.change(ctx, startActor, func(tx *publish.Tx) error {
		project, err := projectByName(tx, adminName)
		if errors.Is(err, store.ErrNotFound) {
			project = Project{ID: newID(), Name: adminName, Description: "made at the first start", Created: now()}
			err = tx.PutObject(store.KindProject, project.ID, project)
		}
		if err != nil {
			return err
		}
		t := Token{ID: id, Name: adminName, Project: project.ID, Role: RoleAdmin, Created: now()}
		return tx.PutObject(store.KindToken, id, tokenRow{t, hashSecret(secret)})
	})
}

func projectByName(tx *publish.Tx, name string) (Project, error) {
	all, err := store.ObjectsOf[Project](tx.View, store.KindProject)
	for _, p := range all {
		if p.Name == name {
			return p, err
		}
	}
	return Project{}, errors.Join(err, store.ErrNotFound)
}

// hasAdmin reports whether there is an admin other than the token or user with this id.
func (b *book) hasAdmin(except string) bool {
	for id, t := range b.tokens {
		if id != except && t.Role == RoleAdmin && t.live(now()) {
			return true
		}
	}
	for id, u := range b.users {
		if id != except && u.Role == RoleAdmin {
			return true
		}
	}
	return false
}

func readToken(path string) (id, secret string, err error) {
	f, err := os.ReadFile(path)
	if err != nil {
		return "", "", fmt.Errorf("read the admin token: %w", err)
	}
	id, secret, ok := parseToken(strings.TrimSpace(string(f)))
	if !ok {
		return "", "", fmt.Errorf("%s does not hold a token (np_...): move it away, and a new one is written when it is needed", path)
	}
	return id, secret, nil
}

// writeToken replaces a file by one that only its owner reads, whole or not at all.
func writeToken(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".admin.token-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write the admin token: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write the admin token: %w", err), f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return errors.Join(f.Close(), syncDir(filepath.Dir(path)))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// Some file systems cannot sync a directory, and keep names in order by themselves.
	_ = d.Sync()
	return d.Close()
}
