package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	tab := newTable(&b, "NAME", "DATA")
	tab.row("a", "1")
	tab.row("über", "")
	if err := tab.flush(); err != nil {
		t.Fatal(err)
	}
	tab.row("a-longer-name", "2") // a later page makes the column wider
	tab.row("b", "3")
	if err := tab.flush(); err != nil {
		t.Fatal(err)
	}
	want := `NAME  DATA
a     1
über  -
a-longer-name  2
b              3
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestPrintable(t *testing.T) {
	if got, want := printable("a\x1b[31mb\nc\u202e"), "a\uFFFD[31mb\uFFFDc\uFFFD"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
}

func TestJSONList(t *testing.T) {
	var b strings.Builder
	l := &jsonList{w: &b}
	for _, item := range []string{`{"a":1}`, `{"b":[2]}`} {
		if err := l.add(json.RawMessage(item)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.end(); err != nil {
		t.Fatal(err)
	}
	want := `[
  {
    "a": 1
  },
  {
    "b": [
      2
    ]
  }
]
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestProgress(t *testing.T) {
	tests := []struct {
		name     string
		terminal bool
		quiet    bool
		total    int64
		want     string
	}{
		{"terminal", true, false, 200_000_000, "\rreading    [####################                    ] 50 % of 200.0 MB\x1b[K" +
			"\rreading    [########################################] 100 % of 200.0 MB\x1b[K\r\x1b[K"},
		{"terminal, size unknown", true, false, 0, "\rreading    100.0 MB\x1b[K\rreading    200.0 MB\x1b[K\r\x1b[K"},
		{"pipe", false, false, 200_000_000, "reading: 50 % of 200.0 MB\nreading: 100 % of 200.0 MB\n"},
		{"pipe, nothing to count", false, false, -1, "reading: 3 s\nreading: 6 s\n"},
		{"quiet", true, true, 200_000_000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			now := time.Unix(0, 0)
			p := &progress{w: &b, terminal: tt.terminal, quiet: tt.quiet, now: func() time.Time { return now }}
			step := 50_000_000
			if tt.total < 0 {
				step = 0
			}
			p.begin("reading", tt.total)
			p.add(step) // too early to show
			now = now.Add(lineInterval)
			p.add(step)
			p.add(0) // too early again
			now = now.Add(lineInterval)
			p.add(2 * step)
			p.end()
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
		})
	}
}

// TestProgressDuring is for the race detector: work counts while somebody else looks.
func TestProgressDuring(t *testing.T) {
	p := newProgress(io.Discard, false)
	p.begin("sending", 1000)
	err := p.during(func() error {
		_, err := io.Copy(io.Discard, p.reader(t.Context(), strings.NewReader(strings.Repeat("x", 1000))))
		return err
	})
	p.end()
	if err != nil || p.done != 1000 {
		t.Errorf("during = %v with %d counted, want 1000", err, p.done)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 11, 15, 12, 0, 0, 500, time.UTC)
	tests := []struct{ in, want string }{
		{"90d", "2027-02-13T12:00:00Z"},
		{"12h", "2026-11-16T00:00:00Z"},
		{"2027-01-31", "2027-01-31T00:00:00Z"},
		{"2027-01-31T10:00:00+01:00", "2027-01-31T09:00:00Z"},
		{"soon", ""},
		{"-1h", ""},
		{"-3d", ""},
		{"99999999d", ""},
	}
	for _, tt := range tests {
		at, err := parseMoment(tt.in, now)
		got := ""
		if err == nil {
			got = at.Format(time.RFC3339Nano)
		}
		if got != tt.want {
			t.Errorf("parseMoment(%q) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}
