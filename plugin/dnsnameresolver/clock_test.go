package dnsnameresolver

import (
	"net/http"
	"testing"
	"time"
)

// TestClock is case 50: the times that are stored are those of the API server, not of a node whose clock is wrong.
func TestClock(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	header := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		name   string
		header string
		took   time.Duration
		was    time.Duration
		want   time.Duration
	}{
		{"right", header(0), 10 * time.Millisecond, 0, 0},
		{"within the resolution", header(time.Second), 10 * time.Millisecond, 0, 0},
		{"ten seconds behind", header(10 * time.Second), 0, 0, 10*time.Second + 500*time.Millisecond},
		{"ten seconds ahead", header(-10 * time.Second), 0, 0, -9*time.Second - 500*time.Millisecond},
		{"nearly what is known", header(10 * time.Second), 0, 10 * time.Second, 10 * time.Second},
		{"right again", header(0), 0, 10 * time.Second, 0},
		{"slow reply", header(10 * time.Second), 3 * time.Second, 0, 0},
		{"no date", "", 0, 10 * time.Second, 10 * time.Second},
	}
	for _, tt := range tests {
		var c clock
		c.offset.Store(int64(tt.was))
		c.note(tt.header, now, now.Add(tt.took))
		if got := time.Duration(c.offset.Load()); got != tt.want {
			t.Errorf("%s: offset is %v, want %v", tt.name, got, tt.want)
		}
	}
}
