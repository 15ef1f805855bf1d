package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// tidyMemory gives memory back to the system when work has come to rest. Go does so by itself after minutes; on a small edge
// host the tens of megabytes that a batch of changes needed for a moment are somebody else's by then.
type tidyMemory struct {
	allocated func() uint64 // octets ever allocated
	free      func()
}

const (
	tidyPeriod = 5 * time.Second
	// A period with less than tidyQuiet allocated is one of rest, and less than tidyWorth since the last time is not worth a
	// collection.
	tidyQuiet = 1 << 20
	tidyWorth = 8 << 20
)

func newTidyMemory() tidyMemory {
	return tidyMemory{
		free: func() {
			debug.FreeOSMemory()
			freeProgram()
		},
		allocated: func() uint64 {
			sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
			metrics.Read(sample)
			return sample[0].Value.Uint64()
		},
	}
}

func (m tidyMemory) run(ctx context.Context) error {
	tick := time.NewTicker(tidyPeriod)
	defer tick.Stop()
	last := m.allocated()
	freed, first := last, true // the start was work, however little it allocated
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		now := m.allocated()
		if now-last < tidyQuiet && (first || now-freed > tidyWorth) {
			m.free()
			freed, first = now, false
		}
		last = now
	}
}
