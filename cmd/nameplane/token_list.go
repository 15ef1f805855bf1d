package main

import "github.com/spf13/cobra"

func newTokenList(conn *connection) *cobra.Command {
	return newListCommand(conn, &cobra.Command{
		Short: "List tokens",
		Long: `List all tokens, oldest first, but not what they are: that is known only to those who
have them. Expired and revoked tokens stay listed for 30 days. The time of last use
is true to some minutes.`,
		Example: `  nameplane token list
  nameplane token list -o json | jq -r '.[] | select(.role == "admin") | .name'`,
	}, "tokens", []string{"ID", "NAME", "PROJECT", "ROLE", "APPLICATION", "CREATED", "EXPIRES", "REVOKED", "LAST USED"},
		func(a account) []string {
			return []string{a.ID, a.Name, a.ProjectName, a.Role, a.App, a.CreatedAt, a.ExpiresAt, a.RevokedAt, a.LastUsedAt}
		})
}
