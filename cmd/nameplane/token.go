package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newTokenCommand() *cobra.Command {
	c := cli.NewGroup("token", "Manage tokens", `Tokens are what programs show the server. Each acts for one project, with one role:
a reader sees, a member changes, an admin acts for all projects and manages tokens.
Two roles are for edge computing and have no rights in projects: a platform manages
the DNS rules of applications, and an app is one application instance, which sees and
switches its own rules.

The server keeps only a hash of a token, so that nobody can read it there.

The first start of a server writes a token with the role admin to admin.token in its
data folder. These commands need a token with that role.`,
		`  nameplane token create ci-deploy --role member --expires 90d
  nameplane token create camera --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f
  nameplane token list
  nameplane token revoke ci-deploy`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newTokenCreate(conn), newTokenList(conn), newTokenRevoke(conn))
	return c
}

func newTokenList(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "list",
		Short: "List tokens",
		Long: `List all tokens, oldest first, but not what they are: that is known only to those who
have them. Expired and revoked tokens stay listed for 30 days. The time of last use
is true to some minutes.`,
		Example: `  nameplane token list
  nameplane token list -o json | jq -r '.[] | select(.role == "admin") | .name'`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			head := []string{"ID", "NAME", "PROJECT", "ROLE", "APPLICATION", "CREATED", "EXPIRES", "REVOKED", "LAST USED"}
			return listAccounts(cmd, conn, out, "tokens", head, func(a account) []string {
				return []string{a.ID, a.Name, a.ProjectName, a.Role, a.App, a.CreatedAt, a.ExpiresAt, a.RevokedAt, a.LastUsedAt}
			})
		},
	}
	out.AddFlag(c)
	return c
}

func newTokenRevoke(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:   "revoke NAME",
		Short: "Revoke a token",
		Long: `Revoke a token, given by name or id. It is refused from then on, and so are sessions that
were opened with it. The last admin token cannot be revoked.`,
		Example: `  nameplane token revoke ci-deploy`,
	}, "tokens", "revoked")
}
