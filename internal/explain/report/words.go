package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
)

// Length is a duration as people say it: the two largest units that matter.
func Length(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	s := int64(d.Round(time.Second) / time.Second)
	units := []struct {
		n    int64
		one  string
		many string
	}{{86400, "day", "days"}, {3600, "h", "h"}, {60, "min", "min"}, {1, "s", "s"}}
	var out []string
	for _, u := range units {
		n := s / u.n
		s %= u.n
		switch {
		case n == 1:
			out = append(out, "1 "+u.one)
		case n > 1:
			out = append(out, fmt.Sprintf("%d %s", n, u.many))
		case len(out) > 0:
			return out[0] // 1 h and 3 s is 1 h
		}
		if len(out) == 2 {
			break
		}
	}
	return strings.Join(out, " ")
}

func seconds(s uint32) string {
	if s == 0 {
		return "0 s"
	}
	return Length(time.Duration(s) * time.Second)
}

// moment is a time as seen from another: with its date when that is not the same day, and how far away it is. What is to come is
// waited for, so of a part of a minute the whole counts.
func moment(t, now time.Time) string {
	text := t.UTC().Format("15:04:05 UTC")
	if t.UTC().YearDay() != now.UTC().YearDay() || t.Sub(now).Abs() > 24*time.Hour {
		minute := t.UTC()
		if t.After(now) {
			minute = minute.Add(time.Minute - time.Nanosecond).Truncate(time.Minute)
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

// bare is a name as people write it.
func bare(n dnsname.Name) string {
	if n.IsZero() || n.IsRoot() {
		return n.String()
	}
	return strings.TrimSuffix(n.String(), ".")
}

// count is a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// list joins words as a sentence does.
func list(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
