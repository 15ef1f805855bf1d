//go:build !linux

package boltstore

import "os"

// syncer brings files to the disk.
type syncer struct{}

func (*syncer) datasync(f *os.File, _ bool) error { return f.Sync() }

func (*syncer) holdsThread() bool { return true }

func (*syncer) close() {}
