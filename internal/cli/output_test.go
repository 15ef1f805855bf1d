package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	tab := NewTable(&b, "NAME", "DATA")
	tab.Row("a", "1")
	tab.Row("über", "")
	if err := tab.Flush(); err != nil {
		t.Fatal(err)
	}
	tab.Row("a-longer-name", "2") // a later page widens the column
	tab.Row("b", "3")
	if err := tab.Flush(); err != nil {
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
	if got, want := Printable("a\x1b[31mb\nc\u202e"), "a\uFFFD[31mb\uFFFDc\uFFFD"; got != want {
		t.Errorf("printable = %q, want %q", got, want)
	}
}

func TestJSONList(t *testing.T) {
	var b strings.Builder
	l := NewJSONList(&b)
	for _, item := range []string{`{"a":1}`, `{"b":[2]}`} {
		if err := l.Add(json.RawMessage(item)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.End(); err != nil {
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
		{"terminal", true, false, 200_000_000,
			"\rreading    [####################                    ] 50 % of 200.0 MB\x1b[K" +
				"\rreading    [########################################] 100 % of 200.0 MB\x1b[K\r\x1b[K"},
		{"terminal, size unknown", true, false, 0, "\rreading    100.0 MB\x1b[K\rreading    200.0 MB\x1b[K\r\x1b[K"},
		{"pipe", false, false, 200_000_000, "reading: 50 % of 200.0 MB\nreading: 100 % of 200.0 MB\n"},
		{"pipe, nothing to count", false, false, -1, "reading: 3 s\nreading: 6 s\n"},
		{"quiet", true, true, 200_000_000, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b strings.Builder
				p := &Progress{w: &b, terminal: tt.terminal, quiet: tt.quiet}
				step := 50_000_000
				if tt.total < 0 {
					step = 0
				}
				p.Begin("reading", tt.total)
				p.Add(step) // too early to be shown
				time.Sleep(lineInterval)
				p.Add(step)
				p.Add(0) // again too early
				time.Sleep(lineInterval)
				p.Add(2 * step)
				p.End()
				if diff := cmp.Diff(tt.want, b.String()); diff != "" {
					t.Errorf("progress (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestProgressDuring is for the race detector: the work counts bytes while During shows them.
func TestProgressDuring(t *testing.T) {
	p := NewProgress(io.Discard, false)
	p.Begin("sending", 1000)
	err := p.During(func() error {
		_, err := io.Copy(io.Discard, p.Reader(t.Context(), strings.NewReader(strings.Repeat("x", 1000))))
		return err
	})
	p.End()
	if err != nil || p.done != 1000 {
		t.Errorf("during = %v with %d counted, want 1000", err, p.done)
	}
}
