package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
)

// The exit statuses, the same for every command.
const (
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

// usage is a command that was not understood.
func usage(c *cobra.Command, format string, a ...any) error {
	return &failure{code: exitUsage, text: fmt.Sprintf(format, a...), hint: fmt.Sprintf("%s --help explains it", c.CommandPath())}
}

// undefined adds what to do to an error of a cluster that does not know our kinds.
func undefined(err error, code int) error {
	if !meta.IsNoMatchError(err) {
		return err
	}
	return &failure{code: code, text: err.Error(), err: err, hint: "the cluster lacks the definitions: nameplane-egress crds | kubectl apply -f -"}
}

// report tells what went wrong and returns the exit status.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	code, hint := exitError, ""
	if f, ok := errors.AsType[*failure](err); ok {
		code, hint = f.code, f.hint
	}
	fmt.Fprintf(w, "nameplane-egress: %s\n", err)
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", hint)
	}
	return code
}
