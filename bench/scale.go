package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nameplane/nameplane/test/peers"
)

// scale measures nameplane with a million names: import, memory, restart; and idle memory.
func (b *bench) scale(ctx context.Context) error {
	if b.nameplane == "" {
		return nil // built has added a note
	}
	names := 1_000_000
	if b.quick {
		names = 100_000
	}
	zone, err := writeZone(b.dir, names)
	if err != nil {
		return err
	}
	s, err := peers.Nameplane(b.nameplane).Start(ctx, nil, peers.Options{Ready: time.Minute})
	if err != nil {
		return err
	}
	defer s.Stop()
	return b.grow(ctx, s, zone, names)
}

// grow imports the zone into an empty server and restarts it.
func (b *bench) grow(ctx context.Context, s *peers.Server, zone peers.Zone, names int) error {
	idle, err := settled(s)
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.Run(ctx, "zone", "import", zone.File); err != nil {
		return err
	}
	imported := time.Since(start)
	last := host(names - 2) // a name that is not an alias
	if err := served(s.Addr, last.name(), last.v4()); err != nil {
		return err
	}
	after, err := settled(s)
	if err != nil {
		return err
	}
	restart, err := restarted(ctx, s, last)
	if err != nil {
		return err
	}
	again, err := settled(s)
	if err != nil {
		return err
	}
	perName := func(bytes int64) string {
		return fmt.Sprintf("%.0f MB, %.0f bytes per name", float64(bytes)/1e6, float64(bytes)/float64(names))
	}
	b.report.table(fmt.Sprintf("nameplane with %d names", names), [][]string{
		{"", "measured"},
		{"idle, empty store", fmt.Sprintf("%.1f MB", float64(idle)/1e6)},
		{"`nameplane zone import`", fmt.Sprintf("%.1f s", imported.Seconds())},
		{"memory after the import", perName(after)},
		{"restart to first answer", fmt.Sprintf("%.2f s", restart.Seconds())},
		{"memory after the restart", perName(again)},
	})
	return nil
}

// restarted returns the time from the start of the process to a correct answer.
func restarted(ctx context.Context, s *peers.Server, h host) (time.Duration, error) {
	s.Process.Stop()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	start := time.Now()
	if err := s.Start(); err != nil {
		return 0, err
	}
	if err := s.WaitFor(ctx, zoneName); err != nil {
		return 0, err
	}
	taken := time.Since(start)
	return taken, served(s.Addr, h.name(), h.v4())
}

// settled returns the resident memory after a pause without work.
func settled(s *peers.Server) (int64, error) {
	time.Sleep(3 * time.Second)
	u, err := s.Usage()
	return u.Memory, err
}
