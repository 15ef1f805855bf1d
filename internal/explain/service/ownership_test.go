package service_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nameplane/nameplane/internal/explain/service"
)

// TestOwnership checks that a verified domain becomes unverified only after three failures over a day.
func TestOwnership(t *testing.T) {
	start := time.Date(2026, 11, 17, 12, 0, 0, 0, time.UTC)
	type step struct {
		after time.Duration // since start
		seen  service.Observation
		want  bool
	}
	const found, missing, unknown = service.ProofFound, service.ProofMissing, service.ProofUnknown
	tests := []struct {
		name  string
		steps []step
	}{
		{"never verified", []step{{0, missing, false}, {48 * time.Hour, unknown, false}}},
		{"verified by one observation", []step{{0, missing, false}, {time.Minute, found, true}}},
		{"three failures over a day", []step{{0, found, true}, {time.Hour, missing, true}, {13 * time.Hour, missing, true},
			{25 * time.Hour, missing, false}}},
		{"one failure, however long", []step{{0, found, true}, {time.Hour, missing, true}, {90 * time.Hour, unknown, true}}},
		{"two failures over a week", []step{{0, found, true}, {time.Hour, missing, true}, {168 * time.Hour, missing, true}}},
		{"many failures in less than a day", []step{{0, found, true}, {time.Hour, missing, true},
			{2 * time.Hour, missing, true}, {3 * time.Hour, missing, true},
			{24*time.Hour + 59*time.Minute, missing, true}, {25 * time.Hour, missing, false}}},
		{"a success begins again", []step{{0, found, true}, {time.Hour, missing, true}, {2 * time.Hour, missing, true},
			{24 * time.Hour, found, true}, {26 * time.Hour, missing, true}, {49 * time.Hour, missing, true},
			{50 * time.Hour, missing, false}}},
		{"unknown does not count", []step{{0, found, true}, {time.Hour, missing, true}, {2 * time.Hour, unknown, true},
			{30 * time.Hour, unknown, true}, {31 * time.Hour, missing, true}, {32 * time.Hour, missing, false}}},
		{"the clock goes back", []step{{0, found, true}, {48 * time.Hour, missing, true}, {time.Hour, missing, true},
			{2 * time.Hour, missing, true}}},
	}
	for _, tt := range tests {
		var o service.Ownership
		for i, s := range tt.steps {
			if o = o.Next(s.seen, start.Add(s.after)); o.Verified != s.want {
				t.Errorf("%s: step %d: verified is %v, want %v: %+v", tt.name, i, o.Verified, s.want, o)
			}
		}
	}
}

func TestParseToken(t *testing.T) {
	got, err := service.ParseToken("www.example.com", "http://WWW.example.com/.well-known/x=a=b")
	if err != nil || got.Body != "a=b" || got.URL != "http://WWW.example.com/.well-known/x" {
		t.Errorf("ParseToken: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"http://www.example.com/x":                                 "must have the form URL=TEXT",
		"http://www.example.com/x=":                                "must have the form URL=TEXT",
		"https://www.example.com/x=a":                              "must have the form http://www.example.com/PATH",
		"http://www.example.com:8080/x=a":                          "must have the form",
		"http://user@www.example.com/x=a":                          "must have the form",
		"http://www.example.com/x?y=a":                             "must have the form",
		"http://www.example.org/x=a":                               "is not one of www.example.com",
		"http://169.254.169.254/x=a":                               "is not one of www.example.com",
		"www.example.com/x=a":                                      "must have the form",
		"http://www.example.com/x=" + strings.Repeat("a", 1<<10+1): "at most 1024 are allowed",
	} {
		if _, err := service.ParseToken("www.example.com", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

func TestSameForm(t *testing.T) {
	const token = "4f1c-9a2b-77de"
	for text, want := range map[string]bool{"aaaa-bbbb-0000": true, "aaaa-bbbb-000": false, "aaaa_bbbb_0000": false,
		"v=spf1 -all xx": false, "": false} {
		if got := service.SameForm(token, text); got != want {
			t.Errorf("SameForm(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestFirstDifference(t *testing.T) {
	for _, tt := range [][3]string{
		{"abc", "abc", ""},
		{"abc", "ab", "it ends after character 2 of 3"},
		{"abc", "abc\u00a0", "character 4 is U+00A0, and nothing is expected there"},
		{"a-c", "a–c", `character 2 is U+2013, not "-"`},
		{"é", "è", "character 1 is U+00E8, not U+00E9"},
	} {
		if got := service.FirstDifference(tt[0], tt[1]); got != tt[2] {
			t.Errorf("FirstDifference(%q, %q) = %q, want %q", tt[0], tt[1], got, tt[2])
		}
	}
}
