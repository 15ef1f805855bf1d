package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/store"
	"github.com/nameplane/nameplane/internal/store/boltstore"
)

func newScrubCommand() *cobra.Command {
	conn := &connection{}
	c := &cobra.Command{
		Use:   "scrub [FILE]",
		Short: "Verify the server's store, or a backup",
		Long: `Read a whole store from the disk and verify its checksums: those of every row, and the
sums that show whether rows are missing. Nothing is changed.

Without FILE the server verifies its own store while it serves; this needs a token with
the role admin. With FILE the command verifies a backup, or the store of a server that
is stopped.

Exit status 0: nothing is damaged. 2: something is; the message says what, and what to
do. Run it from time to time, so that a failing disk is noticed while the backups are
still good.`,
		Example: `  nameplane scrub
  nameplane scrub nameplane-2026-01-31.db`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, rows, err := "the server's store", 0, error(nil)
			if len(args) == 1 {
				what = args[0]
				rows, err = boltstore.Check(what)
				err = damaged(err)
			} else {
				rows, err = scrubServer(cmd, conn)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d rows, nothing is damaged\n", what, rows)
			return err
		},
	}
	conn.addFlags(c)
	return c
}

// scrubServer lets the server verify its store.
func scrubServer(cmd *cobra.Command, conn *connection) (rows int, err error) {
	cl, err := conn.open(cmd.Context())
	if err != nil {
		return 0, err
	}
	var out struct {
		Rows   int
		Damage string
	}
	if err := cl.call(cmd.Context(), http.MethodPost, "/admin/v1/scrub", nil, &out); err != nil {
		return 0, err
	}
	if out.Damage != "" {
		return 0, &cli.Failure{Code: cli.ExitError, Text: out.Damage}
	}
	return out.Rows, nil
}

// verify returns an error for a file that is no intact store.
func verify(path string) error {
	_, err := boltstore.Check(path)
	if errors.Is(err, boltstore.ErrNoChecksums) {
		return nil // the server is of an earlier build
	}
	if d, ok := errors.AsType[*store.DamagedError](err); ok {
		return cli.Fail("nameplane scrub says more about the store of the server; keep the backups that you have",
			"the copy is damaged and was not kept: %s", d.Err)
	}
	return err
}

// damaged gives a damaged store the exit status of an error.
func damaged(err error) error {
	if d, ok := errors.AsType[*store.DamagedError](err); ok {
		return &cli.Failure{Code: cli.ExitError, Text: d.Error(), Err: err}
	}
	return err
}
