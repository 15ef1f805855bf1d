// Package words formats names, lists, numbers, durations and times for sentences that people read.
//
// Start with List and Count for lists and plurals. Length formats durations, and Moment formats times.
package words

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Name returns a name without its final dot. The root is ".".
func Name(n dnsname.Name) string {
	if n.IsRoot() {
		return "."
	}
	return strings.TrimSuffix(n.String(), ".")
}

// List joins words: "a, b and c".
func List(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
}

// Each returns word(x) for each element x of all.
func Each[T any](all []T, word func(T) string) (out []string) {
	for _, x := range all {
		out = append(out, word(x))
	}
	return out
}

// Some joins words like List. Of more than six words it shows five and counts the others. Without words it returns
// "none".
func Some(words []string) string {
	const most = 6
	switch n := len(words); {
	case n == 0:
		return "none"
	case n > most:
		words = append(slices.Clone(words[:most-1]), fmt.Sprintf("%d more", n-most+1))
	}
	return List(words)
}

// Count returns a number with its noun: "1 server", "2 servers".
func Count(n int, one, many string) string { return fmt.Sprintf("%d %s", n, Verb(n, one, many)) }

// Verb returns one if n is 1, and many otherwise.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// All returns "Both servers" or "All 3 servers". n must be larger than 1.
func All(n int, many string) string {
	if n == 2 {
		return "Both " + many
	}
	return fmt.Sprintf("All %d %s", n, many)
}

// Length returns a duration in its two largest units: "1 h 30 min". It leaves out a second unit that is 0: "1 h".
func Length(d time.Duration) string {
	switch {
	case d <= 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	units := []struct {
		d         time.Duration
		one, many string
	}{{24 * time.Hour, "day", "days"}, {time.Hour, "h", "h"}, {time.Minute, "min", "min"}, {time.Second, "s", "s"}}
	d = d.Round(time.Second)
	i := 0
	for d < units[i].d {
		i++
	}
	out := Count(int(d/units[i].d), units[i].one, units[i].many)
	if i++; i < len(units) && d%units[i-1].d >= units[i].d {
		out += " " + Count(int(d%units[i-1].d/units[i].d), units[i].one, units[i].many)
	}
	return out
}

// Seconds returns a number of seconds, such as a TTL, in the form of Length.
func Seconds(s uint32) string { return Length(time.Duration(s) * time.Second) }

// Day returns the date of t in UTC.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Clock returns t as a time of day in UTC, with the date if it is not today.
func Clock(t, now time.Time) string {
	if Day(t) == Day(now) {
		return t.UTC().Format("15:04 UTC")
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// By returns a time that the reader waits for, in the form of Clock. It rounds up to a whole minute, so that the shown
// time is never too early.
func By(t, now time.Time) string { return Clock(wholeMinute(t), now) }

func wholeMinute(t time.Time) time.Time {
	return t.Add(time.Minute - time.Nanosecond).Truncate(time.Minute)
}

// Moment returns t with its distance from now: "14:32:00 UTC, in 41 min". On another day it shows the date instead of
// the seconds, and rounds a future time up to a whole minute.
func Moment(t, now time.Time) string {
	text := t.UTC().Format("15:04:05 UTC")
	if t.UTC().YearDay() != now.UTC().YearDay() || t.Sub(now).Abs() > 24*time.Hour {
		minute := t.UTC()
		if t.After(now) {
			minute = wholeMinute(minute)
		}
		text = minute.Format("2006-01-02 15:04 UTC")
	}
	switch d := t.Sub(now); {
	case d >= time.Second:
		return text + ", in " + Length(d)
	case d <= -time.Second:
		return text + ", " + Length(-d) + " ago"
	}
	return text + ", now"
}
