package main

import (
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newBackupCommand asks the server for the copy. A copy of the file itself could have pages from before and after a
// write.
func newBackupCommand() *cobra.Command {
	var force bool
	conn := &connection{}
	c := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the store of a running server",
		Long: `Write a consistent copy of the server's store to FILE: zones, history, tokens, users and
projects at one point in time. The server keeps serving and accepting changes.

The copy is a store file itself. To restore it, stop the server, replace nameplane.db in
its data directory by the copy, and start the server.

Only the owner of FILE can read it. FILE is written completely or not at all, and an
existing file is not overwritten without --force. The copy is verified, as "nameplane
scrub FILE" does, before it gets its name. The command needs a token with the role admin.`,
		Example: `  nameplane backup nameplane-$(date +%F).db`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Check before the transfer: a store can have gigabytes.
			if err := checkOverwrite(args[0], force); err != nil {
				return err
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			size, err := writeFile(args[0], force, func(w io.Writer) (int64, error) {
				req, err := cl.request(cmd.Context(), http.MethodGet, "/admin/v1/backup", nil)
				if err != nil {
					return 0, err
				}
				req.Header.Set("Accept", "application/octet-stream")
				size, err := cl.download(req, w)
				if err != nil {
					return size, err
				}
				// writeFile passes the temporary file. A damaged copy is deleted and never gets the name of a
				// backup.
				return size, verifyStore(w.(*os.File).Name())
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "wrote %s, %d bytes\n", args[0], size)
			return err
		},
	}
	conn.addFlags(c)
	c.Flags().BoolVar(&force, "force", false, "overwrite FILE")
	return c
}
