package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// unprivileged lists the accounts that a server started by root switches to when none is configured, in order of
// preference.
var unprivileged = []string{"nameplane", "nobody"}

// dropRoot switches the process to an unprivileged user once every port is bound. It changes the owner of the data
// directory to that user, so that the next start, by root or by the user, can write its files. An empty name selects
// one of unprivileged; "root" keeps root.
func dropRoot(log *slog.Logger, name, dir string) error {
	if os.Geteuid() != 0 || name == "root" {
		if name != "" && name != "root" {
			log.Warn("not started by root, so the user stays as it is", "user", name)
		}
		return nil
	}
	u, err := pickUser(name)
	if err != nil {
		return err
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("user %s: %w", u.Username, err)
	}
	if err := giveTo(dir, uid, gid); errors.Is(err, syscall.EROFS) {
		log.Warn("the data directory is on a read-only file system and keeps its owner", "dir", dir)
	} else if err != nil {
		return fmt.Errorf("give %s to user %s: %w", dir, u.Username, err)
	}
	// Change groups first: an unprivileged user cannot change them.
	for _, step := range []error{syscall.Setgroups([]int{gid}), syscall.Setgid(gid), syscall.Setuid(uid)} {
		if step != nil {
			return fmt.Errorf("become user %s: %w; start with --user root to stay root", u.Username, step)
		}
	}
	if syscall.Setuid(0) == nil {
		return fmt.Errorf("became user %s and could still become root again", u.Username)
	}
	log.Info("dropped root", "user", u.Username)
	return nil
}

// pickUser returns the configured user, or the first existing one of unprivileged.
func pickUser(name string) (*user.User, error) {
	if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("--user %s: %w", name, err)
		}
		return u, nil
	}
	for _, n := range unprivileged {
		if u, err := user.Lookup(n); err == nil {
			return u, nil
		}
	}
	return nil, fmt.Errorf("started by root and found none of the users %q to become: give one with --user", unprivileged)
}

// giveTo changes the owner of the directory and its files. It does not follow symbolic links, which may lead outside.
func giveTo(dir string, uid, gid int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	paths := []string{dir}
	for _, e := range entries {
		if e.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for _, p := range paths {
		if err := os.Lchown(p, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
