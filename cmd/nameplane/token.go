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
