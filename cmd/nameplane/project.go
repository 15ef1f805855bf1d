package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newProjectCommand() *cobra.Command {
	c := cli.NewGroup("project", "Manage projects", `Projects own zones. Tokens and users act for one project and see its zones only; those
with the role admin may act for all. These commands need that role.`,
		`  nameplane project create web --description "the web team"
  nameplane token create web-ci --project web
  nameplane zone create example.org --project web`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newProjectCreate(conn), newProjectList(conn), newProjectDelete(conn))
	return c
}
