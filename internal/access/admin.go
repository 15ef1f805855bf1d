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

// AdminFile is the name of the file in the data directory that has the first token.
const AdminFile = "admin.token"

// adminName is the name of the first project and of its token. It is also the user name to log in with the token.
const adminName = "admin"

var startActor = store.Actor{Who: "nameplane", API: "start"}

// EnsureAdmin ensures that the server has an admin. The owner of the data directory is the owner of the server, so
// EnsureAdmin trusts the token file in it, unless the store has an admin:
//
//   - No file and no admin in the store: this is the first start. EnsureAdmin creates a token and writes it to
//     DIR/admin.token.
//   - The file has a token that is not in the store, and the store has no admin: the first start was interrupted, or
//     the store is new. The token in the file becomes the admin token.
//   - The file has an expired or revoked token, and the store no longer has an admin: a new token replaces it.
//   - An admin exists: EnsureAdmin changes nothing. It logs a warning when the token in the file is not valid.
//   - The file has no token at all: EnsureAdmin returns an error. The file may be a mistake of the owner, and must not
//     be overwritten.
//
// EnsureAdmin never logs the token itself.
func (a *Access) EnsureAdmin(ctx context.Context, dir string) error {
	path := filepath.Join(dir, AdminFile)
	id, secret, err := readToken(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	b := a.accounts.Load()
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

// newAdmin creates an admin token and writes it to DIR/admin.token, replacing the file. With it, the owner of the data
// directory regains access when all tokens are lost.
func (a *Access) newAdmin(ctx context.Context, dir string) error {
	id, secret := random(tokenIDSize), random(tokenSecretSize)
	// Write the file first: after an interruption here, the next start adopts the token in the file. In the other order,
	// the store could have a token that nobody knows.
	if err := writeToken(filepath.Join(dir, AdminFile), tokenPrefix+id+"_"+secret+"\n"); err != nil {
		return err
	}
	a.opts.Log.Info("admin token written", "file", filepath.Join(dir, AdminFile), "token", id)
	return a.adopt(ctx, id, secret)
}

// adopt stores an admin token with a given secret, and creates the admin project when there is none.
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

// hasAdmin reports whether there is an admin other than the token or user with this ID.
func (b *accounts) hasAdmin(except string) bool {
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
		return "", "", fmt.Errorf("%s does not contain a token (np_...): move it away; nameplane writes a new one if needed",
			path)
	}
	return id, secret, nil
}

// writeToken atomically replaces a file with one that only its owner can read.
func writeToken(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".admin.token-*") // creates it with mode 0600
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
	// Some file systems do not support syncing a directory, and order directory changes themselves.
	_ = d.Sync()
	return d.Close()
}
