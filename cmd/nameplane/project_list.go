package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newProjectList(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:     "list",
		Short:   "List projects",
		Long:    `List all projects by name.`,
		Example: `  nameplane project list`,
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			head := []string{"ID", "NAME", "DESCRIPTION", "CREATED"}
			return listAccounts(cmd, conn, out, "projects", head, func(a account) []string {
				return []string{a.ID, a.Name, a.Description, a.CreatedAt}
			})
		},
	}
	out.AddFlag(c)
	return c
}
