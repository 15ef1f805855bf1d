package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// clock measures how much CPU time of the machine all programs use.
type clock struct {
	start time.Time
	busy  time.Duration
}

// startClock begins to count. Rounds in which other programs used much CPU are left out if there are quiet ones.
func startClock() (clock, error) {
	busy, err := busyTime()
	return clock{time.Now(), busy}, err
}

// others returns the percentage of the machine's CPU time since the start that was neither idle nor in known.
func (c clock) others(known time.Duration) (float64, error) {
	busy, err := busyTime()
	if err != nil {
		return 0, err
	}
	whole := time.Since(c.start) * time.Duration(runtime.NumCPU())
	return max(0, 100*float64(busy-c.busy-known)/float64(whole)), nil
}

// busyTime returns the time that all processors were not idle: user, nice, system and the two kinds of interrupt of
// proc(5) stat, in hundredths of a second. A packet on loopback is delivered in a soft interrupt of its sender, and
// Linux counts that in the sender's own CPU time too. Leaving it out would hide other programs.
func busyTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 {
		return 0, fmt.Errorf("/proc/stat: cannot read %q", line)
	}
	var sum int64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return time.Duration(sum) * 10 * time.Millisecond, nil
}
