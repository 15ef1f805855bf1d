package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const tokenLong = `Programs authenticate to the server with tokens. Each token acts for one project with one
role: a reader reads, a member also changes, and an admin acts for all projects and
manages tokens.

Two roles are for edge computing and have no permissions in projects: a platform manages
the DNS rules of applications, and an app is one application instance, which reads its
own rules and changes their state. The role metrics reads only /metrics.

The server stores only a hash of each token.

The first start of a server writes a token with the role admin to admin.token in its
data directory. These commands need a token with that role.`

// newTokenCommand has no command that shows a token again: the server stores only its hash.
func newTokenCommand() *cobra.Command {
	c := cli.NewGroup("token", "Manage tokens", tokenLong,
		`  nameplane token create ci-deploy --role member --expires 90d
  nameplane token create camera --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f
  nameplane token list
  nameplane token revoke ci-deploy`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newTokenCreate(conn), newTokenList(conn), newTokenRevoke(conn))
	return c
}
