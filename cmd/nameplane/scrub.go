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

// newScrubCommand finds damage in rows that nobody reads. The server verifies every row that it reads, so damage in the
// others would be found when the last good backup is gone.
func newScrubCommand() *cobra.Command {
	conn := &connection{}
	c := &cobra.Command{
		Use:   "scrub [FILE]",
		Short: "Verify the server's store, or a backup",
		Long: `Read a complete store from disk and verify its checksums: one for every row, and the sums
that show whether rows are missing. The command changes nothing.

Without FILE the server verifies its own store while it serves; this needs a token with
the role admin. With FILE the command verifies a backup, or the store of a stopped
server.

Exit status: 0 the store is intact, 2 it is damaged and the message says what to do. Run
the command regularly, to detect a failing disk while the backups are still good.`,
		Example: `  nameplane scrub
  nameplane scrub nameplane-2026-01-31.db`,
		Args: cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			what, rows, err := "the server's store", 0, error(nil)
			if len(args) == 1 {
				// Without a server and without a token: a backup is often verified on another machine.
				what = args[0]
				rows, err = boltstore.Check(what)
				err = damaged(err)
			} else {
				// The server holds the lock of its file, so only the server itself can read the store while it serves.
				rows, err = scrubServer(cmd, conn)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is intact: %d rows\n", what, rows)
			return err
		},
	}
	conn.addFlags(c)
	return c
}

// scrubServer makes the server verify its own store, and returns the number of rows.
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
	// A damaged store is a result of the request and not an error, so the status of the reply is 200.
	if out.Damage != "" {
		return 0, &cli.Failure{Code: cli.ExitError, Text: out.Damage}
	}
	return out.Rows, nil
}

// verifyStore returns an error if the file is not an intact store.
func verifyStore(path string) error {
	_, err := boltstore.Check(path)
	if errors.Is(err, boltstore.ErrNoChecksums) {
		return nil // the store of an older server
	}
	if d, ok := errors.AsType[*store.DamagedError](err); ok {
		return cli.Fail("run nameplane scrub for the store of the server, and keep your existing backups",
			"the copy is damaged and was deleted: %s", d.Err)
	}
	return err
}

// damaged adds the exit status to the error of a damaged store. Other errors are returned unchanged.
func damaged(err error) error {
	if d, ok := errors.AsType[*store.DamagedError](err); ok {
		return &cli.Failure{Code: cli.ExitError, Text: d.Error(), Err: err}
	}
	return err
}
