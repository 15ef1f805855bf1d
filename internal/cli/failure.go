package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// These are the exit statuses of every command.
const (
	ExitWarning = 1
	ExitError   = 2
	ExitUnknown = 3 // the outcome is not known
	ExitUsage   = 4
)

// Failure is an error with an exit status and a hint. All other errors exit with ExitError and have no hint.
type Failure struct {
	Code int
	Text string // empty when the command has already printed the error
	Hint string // what to do about the error; may be empty
	Err  error  // the cause, for errors.Is
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.Err }

// Fail returns an error with a hint, which may be empty.
func Fail(hint, format string, a ...any) error {
	return &Failure{Code: ExitError, Text: fmt.Sprintf(format, a...), Hint: hint}
}

// Usage returns the error for a command line that was not understood.
func Usage(c *cobra.Command, format string, a ...any) error {
	return &Failure{Code: ExitUsage, Text: fmt.Sprintf(format, a...),
		Hint: fmt.Sprintf("see %s --help", c.CommandPath())}
}

// Report prints the error of a program and returns the exit status.
func Report(w io.Writer, program string, err error) int {
	if err == nil {
		return 0
	}
	code, hint := ExitError, ""
	if f, ok := errors.AsType[*Failure](err); ok {
		code, hint = f.Code, f.Hint
	}
	if err.Error() == "" {
		return code
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = Printable(line)
	}
	fmt.Fprintf(w, "%s: %s\n", program, strings.Join(lines, "\n"))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", Printable(hint))
	}
	return code
}
