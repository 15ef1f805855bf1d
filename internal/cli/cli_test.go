package cli

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

func TestReport(t *testing.T) {
	cause := errors.New("disk is full")
	tests := []struct {
		name string
		err  error
		code int
		want string
	}{
		{"success", nil, 0, ""},
		{"any error", cause, ExitError, "np: disk is full\n"},
		{"hint", Fail("free some space", "cannot write: %s", cause), ExitError,
			"np: cannot write: disk is full\nhint: free some space\n"},
		{"wrapped", fmt.Errorf("backup: %w", &Failure{Code: ExitUnknown, Text: "interrupted", Hint: "try again"}),
			ExitUnknown,
			"np: backup: interrupted\nhint: try again\n"},
		{"already printed", &Failure{Code: ExitWarning}, ExitWarning, ""},
		{"control characters", Fail("\x1b[2J", "a\x07b\nc"), ExitError, "np: a\uFFFDb\nc\nhint: \uFFFD[2J\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			if code := Report(&b, "np", tt.err); code != tt.code || b.String() != tt.want {
				t.Errorf("Report = %d %q, want %d %q", code, b.String(), tt.code, tt.want)
			}
		})
	}
}

func TestRoot(t *testing.T) {
	run := func(args ...string) error {
		root := NewRoot("np", "", "", "")
		root.AddCommand(&cobra.Command{Use: "list [NAME]", Args: Args(0, 1),
			RunE: func(*cobra.Command, []string) error { return nil }},
			&cobra.Command{Use: "delete NAME", Args: Args(1, -1), RunE: func(*cobra.Command, []string) error { return nil }})
		root.SetArgs(args)
		root.SetOut(new(bytes.Buffer))
		return root.Execute()
	}
	tests := []struct {
		args []string
		want string // expected error; empty for none
	}{
		{[]string{"list"}, ""},
		{[]string{"list", "a"}, ""},
		{[]string{"list", "a", "b"}, `unexpected argument "b": np list [NAME] [flags]`},
		{[]string{"delete", "a", "b", "c"}, ""},
		{[]string{"delete"}, "too few arguments: np delete NAME [flags]"},
		{[]string{"lsit"}, `"lsit" is not a command of np; did you mean list?`},
		{nil, "a command is missing: completion, delete, list"},
		{[]string{"list", "--all"}, "unknown flag: --all"},
	}
	for _, tt := range tests {
		err := run(tt.args...)
		switch f, _ := errors.AsType[*Failure](err); {
		case tt.want == "" && err != nil:
			t.Errorf("%q: %v", tt.args, err)
		case tt.want != "" && (f == nil || f.Text != tt.want || f.Code != ExitUsage || f.Hint == ""):
			t.Errorf("%q: %v, want a usage error %q with a hint", tt.args, err, tt.want)
		}
	}
}
