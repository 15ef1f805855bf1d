package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// clock watches how much of the machine is used, by anybody.
type clock struct {
	start time.Time
	busy  time.Duration
}

func startClock() (clock, error) {
	busy, err := busyTime()
	return clock{time.Now(), busy}, err
}

// others is the percentage of the machine since the start that went neither to
// idling nor to those whose CPU time is given.
func (c clock) others(known time.Duration) (float64, error) {
	busy, err := busyTime()
	if err != nil {
		return 0, err
	}
	whole := time.Since(c.start) * time.Duration(runtime.NumCPU())
	return max(0, 100*float64(busy-c.busy-known)/float64(whole)), nil
}

// busyTime is user, nice and system time of all processors, the first three
// numbers of proc(5) stat, in hundredths of a second. Interrupts are left out:
// they are the price of the packets.
func busyTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 4 {
		return 0, fmt.Errorf("/proc/stat: cannot read %q", line)
	}
	var sum int64
	for _, field := range fields[1:4] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond, nil
}
