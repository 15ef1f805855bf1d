package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// The exit statuses, the same for every command.
const (
	exitWarning = 1
	exitError   = 2
	exitUnknown = 3 // could not tell
	exitUsage   = 4
)

// failure is an error as a person gets to see it. Any other error is shown too, with exitError and without a hint.
type failure struct {
	code int
	text string
	hint string // what to do about it; may be empty
	err  error  // the cause, for errors.Is
}

func (f *failure) Error() string { return f.text }
func (f *failure) Unwrap() error { return f.err }

// fail is an error with a hint.
func fail(hint, format string, a ...any) error {
	return &failure{code: exitError, text: fmt.Sprintf(format, a...), hint: hint}
}

// usage is a command that was not understood.
func usage(c *cobra.Command, format string, a ...any) error {
	return &failure{code: exitUsage, text: fmt.Sprintf(format, a...), hint: fmt.Sprintf("%s --help explains it", c.CommandPath())}
}

// tell says what went wrong and returns the exit status. A failure without a text was shown already.
func tell(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code, hint := exitError, ""
	if f, ok := errors.AsType[*failure](err); ok {
		code, hint = f.code, f.hint
	}
	if err.Error() == "" {
		return code
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	fmt.Fprintf(w, "nameplane: %s\n", strings.Join(lines, "\n"))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", printable(hint))
	}
	return code
}
