package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newTSIGDelete asks no question: a key that leaked must be deleted at once, and a new key costs one command.
func newTSIGDelete(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a TSIG key",
		Long: `Delete a TSIG key by its name or id. The server refuses messages with the key from then
on.`,
		Example: `  nameplane tsig delete update.example.org`,
		Args:    cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			// The API knows keys by id only. People and DNS messages know them by name.
			k, err := cl.findKey(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if err := cl.call(cmd.Context(), http.MethodDelete, tsigPath+"/"+k.ID, nil, nil); err != nil {
				return err
			}
			return cli.Say(cmd, "deleted TSIG key %s (%s)\n", k.Name, k.ID)
		}),
	}
}
