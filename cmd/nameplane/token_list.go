package main

import "github.com/spf13/cobra"

// newTokenList prints when a token was last used. A token that was not used for months is a candidate for token revoke.
func newTokenList(conn *connection) *cobra.Command {
	return newListCommand(conn, &cobra.Command{
		Short: "List tokens",
		Long: `List all tokens, oldest first, without their secrets, which the server does not store.
Expired and revoked tokens are listed for 30 days. The time of the last use is accurate
to a few minutes.`,
		Example: `  nameplane token list
  nameplane token list -o json | jq -r '.[] | select(.role == "admin") | .name'`,
	}, "tokens", []string{"ID", "NAME", "PROJECT", "ROLE", "APPLICATION", "CREATED", "EXPIRES", "REVOKED", "LAST USED"},
		func(a account) []string {
			return []string{a.ID, a.Name, a.ProjectName, a.Role, a.App, a.CreatedAt, a.ExpiresAt, a.RevokedAt, a.LastUsedAt}
		})
}
