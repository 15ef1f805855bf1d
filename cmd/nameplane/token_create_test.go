package main

import (
	"testing"
	"time"
)

func TestParseExpiry(t *testing.T) {
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
		at, err := parseExpiry(tt.in, now)
		got := ""
		if err == nil {
			got = at.Format(time.RFC3339Nano)
		}
		if got != tt.want {
			t.Errorf("parseExpiry(%q) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
}
