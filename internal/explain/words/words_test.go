package words_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/explain/words"
)

func TestLength(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12 * time.Millisecond:           "12 ms",
		time.Second:                     "1 s",
		90 * time.Second:                "1 min 30 s",
		time.Hour:                       "1 h",
		time.Hour + 3*time.Second:       "1 h",
		26 * time.Hour:                  "1 day 2 h",
		48 * time.Hour:                  "2 days",
		59*time.Minute + 59*time.Second: "59 min 59 s",
	} {
		if got := words.Length(d); got != want {
			t.Errorf("Length(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2026, 1, 1, 13, 51, 0, 0, time.UTC)
	for _, test := range []struct {
		at   time.Time
		want string
	}{
		{now.Add(41 * time.Minute), "14:32:00 UTC, in 41 min"},
		{now.Add(-time.Minute), "13:50:00 UTC, 1 min ago"},
		{now, "13:51:00 UTC, now"},
		{now.Add(48 * time.Hour), "2026-01-03 13:51 UTC, in 2 days"},
		// rounded up: one minute earlier is too early
		{now.Add(48*time.Hour + time.Second), "2026-01-03 13:52 UTC, in 2 days"},
		{now.Add(-48*time.Hour - time.Second), "2025-12-30 13:50 UTC, 2 days ago"},
	} {
		if got := words.Moment(test.at, now); got != test.want {
			t.Errorf("Moment(%v) = %q, want %q", test.at, got, test.want)
		}
	}
}

func TestList(t *testing.T) {
	seven := strings.Fields("a b c d e f g")
	for _, tt := range []struct{ got, want string }{
		{words.List(nil), ""}, {words.List(seven[:1]), "a"}, {words.List(seven), "a, b, c, d, e, f and g"},
		{words.Some(nil), "none"}, {words.Some(seven[:6]), "a, b, c, d, e and f"},
		{words.Some(seven), "a, b, c, d, e and 2 more"},
		{words.Count(1, "server", "servers"), "1 server"}, {words.Count(0, "server", "servers"), "0 servers"},
		{words.All(2, "servers"), "Both servers"}, {words.All(3, "servers"), "All 3 servers"},
		{words.Name(dnsname.Root), "."}, {words.Name(dnsname.MustParse("example.org")), "example.org"},
		{words.Name(dnsname.Name{}), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}

func TestBy(t *testing.T) {
	now := time.Date(2026, 1, 1, 13, 51, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		time.Minute: "13:52 UTC", time.Minute + 1: "13:53 UTC", 11 * time.Hour: "2026-01-02 00:51 UTC",
	} {
		if got := words.By(now.Add(d), now); got != want {
			t.Errorf("By(now + %v) = %q, want %q", d, got, want)
		}
	}
	if got := words.Clock(now.Add(30*time.Second), now); got != "13:51 UTC" {
		t.Errorf("Clock = %q, want 13:51 UTC", got)
	}
}
