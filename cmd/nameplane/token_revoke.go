package main

import "github.com/spf13/cobra"

func newTokenRevoke(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Long: `Revoke a token, given by name or id. It is refused from then on, and so are sessions that
were opened with it. The last admin token cannot be revoked.`,
		Example: `  nameplane token revoke ci-deploy`,
	}, "tokens", "revoked")
}
