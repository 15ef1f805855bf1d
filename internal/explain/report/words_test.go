package report

import (
	"testing"
	"time"
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
		if got := Length(d); got != want {
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
		{now.Add(48*time.Hour + time.Second), "2026-01-03 13:52 UTC, in 2 days"}, // a minute before it is not so yet
		{now.Add(-48*time.Hour - time.Second), "2025-12-30 13:50 UTC, 2 days ago"},
	} {
		if got := moment(test.at, now); got != test.want {
			t.Errorf("moment(%v) = %q, want %q", test.at, got, test.want)
		}
	}
}

func TestList(t *testing.T) {
	if got := list([]string{"a", "b", "c"}); got != "a, b and c" {
		t.Error(got)
	}
}
