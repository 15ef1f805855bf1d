package dnsnameresolver

import (
	"net/http"
	"testing"
	"time"
)

// TestClock checks that stored times are those of the API server, not of a node with a wrong clock.
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

// TestStoredTime checks the same end to end, with a replica whose clock is ten minutes behind that of the API server.
func TestStoredTime(t *testing.T) {
	r := newRig(t, nil)
	name := r.create("*.example.com.")
	const ahead = 10 * time.Minute
	r.api.set(func() { r.api.skew += ahead })
	p := r.replica(nil) // gets the server's time with the first list
	r.known(p, "*.example.com.", true)
	r.authority.set("a.example.com. A", "a.example.com. 30 A 192.0.2.1")
	r.ask(p, "a.example.com. A")
	r.want(name, "a.example.com. 192.0.2.1"+ok)
	for _, n := range r.api.get(name).Status.ResolvedNames {
		at := n.ResolvedAddresses[0].LastLookupTime.Time
		if off := time.Since(at.Add(-ahead)).Abs(); off > time.Minute {
			t.Errorf("stored as looked up at %v, which is %v from the API server's time", at, off)
		}
	}
}
