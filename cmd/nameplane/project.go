package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const projectLong = `A project owns zones. Each token and each user acts for one project and sees only its
zones; the role admin may act for all projects. These commands need the role admin.`

// newProjectCommand has no --project flag. Only an admin may use these commands, and the role acts for all projects.
func newProjectCommand() *cobra.Command {
	c := cli.NewGroup("project", "Manage projects", projectLong,
		`  nameplane project create web --description "the web team"
  nameplane token create web-ci --project web
  nameplane zone create example.org --project web`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newProjectCreate(conn), newProjectList(conn), newProjectDelete(conn))
	return c
}
