//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package boltstore

import (
	"os"
	"time"
)

// lock does nothing here: bbolt locks the file by other means on these systems.
func lock(*os.File, bool, time.Duration) error { return nil }
