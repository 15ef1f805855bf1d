package main

import "github.com/spf13/cobra"

// newTokenRevoke uses the verb revoke, because the token stays in the list for 30 days. Until then, an operator can
// find out which token made a change in the history of a zone.
func newTokenRevoke(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Long: `Revoke a token by its name or id. The server rejects the token and its sessions from
then on. The last admin token cannot be revoked.`,
		Example: `  nameplane token revoke ci-deploy`,
	}, "tokens", "revoked")
}
