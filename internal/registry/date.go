package registry

import (
	"strings"
	"time"
)

// layouts are the date formats of registries, those with a time zone first. Numeric dates have the day before the
// month: no known registry writes 12/31/2026.
var layouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700",
	"2006-01-02 15:04:05 MST",
	"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "2006-Jan-02", "2006.01.02 15:04:05",
	"2006.01.02", "2006. 01. 02.",
	"2006/01/02 15:04:05", "2006/01/02", "20060102", "02-Jan-2006 15:04:05 MST", "02-Jan-2006 15:04:05", "02-Jan-2006",
	"2-Jan-2006",
	"2.1.2006 15:04:05", "2.1.2006", "2/1/2006 15:04:05", "2/1/2006", "2 January 2006", "January 2 2006",
	"January 2, 2006", "2 Jan 2006",
	"Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 2006", "Mon, 2 Jan 2006 15:04:05 MST", "Jan-2006",
}

// jst is the only time zone name that needs support: Go parses the others that occur, UTC and GMT.
var jst = time.FixedZone("JST", 9*60*60)

// parseDate parses a date in any format that registries use, and returns it in UTC. A time without a zone is taken as
// UTC. parseDate returns the zero Time if the date is invalid or cannot be that of a registration.
func parseDate(s string) time.Time {
	s = strings.TrimSpace(strings.TrimPrefix(clean(s), "before "))
	if i := strings.IndexByte(s, '#'); i > 0 { // .br: 19990101 #12345
		s = strings.TrimSpace(s[:i])
	}
	zone := time.UTC
	if cut, ok := strings.CutSuffix(s, " (JST)"); ok {
		s, zone = cut, jst
	}
	if i := strings.Index(s, " ("); i > 0 {
		s = s[:i]
	}
	for _, layout := range layouts {
		t, err := time.ParseInLocation(layout, s, zone)
		if err == nil {
			// The first domain is from 1985, and registrations never last a century.
			if t.Year() < 1980 || t.Year() > 2150 {
				return time.Time{}
			}
			return t.UTC().Truncate(time.Second)
		}
	}
	return time.Time{}
}
