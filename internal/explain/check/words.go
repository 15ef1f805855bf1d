package check

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain"
)

// fail is a finding that something is wrong. Without a severity it has the worst of its check.
func fail(severity explain.Severity, actor explain.Actor, subject, format string, args ...any) explain.Finding {
	return explain.Finding{Status: explain.Fail, Severity: severity, Actor: actor, Subject: subject, Words: fmt.Sprintf(format, args...)}
}

func pass(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.Pass, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

func unknown(subject, format string, args ...any) []explain.Finding {
	return []explain.Finding{{Status: explain.NotKnown, Subject: subject, Words: fmt.Sprintf(format, args...)}}
}

// text is a name as people write it.
func text(n dnsname.Name) string {
	switch {
	case n.IsZero():
		return n.String()
	case n.IsRoot():
		return "the root" // a dot ends sentences
	}
	return strings.TrimSuffix(n.String(), ".")
}

func texts(names []dnsname.Name) (out []string) {
	for _, n := range names {
		out = append(out, text(n))
	}
	return out
}

// server is a server as people know it: its name, and its address.
func server(s explain.Server) string { return fmt.Sprintf("%s (%s)", text(s.Host), s.Addr) }

// serverAt is the same for one of which only the address is known.
func serverAt(f *explain.Facts, zone dnsname.Name, addr netip.Addr) string {
	for _, s := range f.Servers {
		if s.Zone == zone && s.Addr == addr {
			return server(s)
		}
	}
	return addr.String()
}

func servers(f *explain.Facts, zone dnsname.Name, addrs []netip.Addr) (out []string) {
	for _, a := range addrs {
		out = append(out, serverAt(f, zone, a))
	}
	return out
}

// list joins words as a sentence does. More than six are counted instead of named.
func list(words []string) string {
	const most = 6
	if n := len(words); n > most {
		words = append(slices.Clone(words[:most-1]), fmt.Sprintf("%d more", n-most+1))
	}
	switch n := len(words); n {
	case 0:
		return "none"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// sentence is what somebody else wrote, with the dot that a sentence has.
func sentence(s string) string { return strings.TrimRight(s, ". ") + "." }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// all are n of something, which are more than one.
func all(n int, many string) string {
	if n == 2 {
		return "Both " + many
	}
	return fmt.Sprintf("All %d %s", n, many)
}

// verb is the form of a verb that fits a number.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// length is a duration as people say it: "1 h", "2 days", "1 h 30 min".
func length(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	units := []struct {
		d         time.Duration
		one, many string
	}{{24 * time.Hour, "day", "days"}, {time.Hour, "h", "h"}, {time.Minute, "min", "min"}, {time.Second, "s", "s"}}
	d = d.Truncate(time.Second)
	for i, u := range units {
		if d < u.d {
			continue
		}
		out := count(int(d/u.d), u.one, u.many)
		if rest := d % u.d; i+1 < len(units) && rest >= units[i+1].d {
			out += " " + count(int(rest/units[i+1].d), units[i+1].one, units[i+1].many)
		}
		return out
	}
	return "0 s"
}

// ttl is a number of seconds as people say it.
func ttl(seconds uint32) string {
	if seconds == 0 {
		return "0 s"
	}
	return length(time.Duration(seconds) * time.Second)
}

// clockTime is a moment as seen from another: with its date if that is not the same day.
func clockTime(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// byTime is a moment that one has to wait for: the whole minute after it, since before it is too early.
func byTime(t, now time.Time) string {
	return clockTime(t.Add(time.Minute-time.Nanosecond).Truncate(time.Minute), now)
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
