package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newUserList(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:     "list",
		Short:   "List users",
		Long:    `List all users by name, with their project and role.`,
		Example: `  nameplane user list`,
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			head := []string{"ID", "NAME", "PROJECT", "ROLE", "CREATED"}
			return listAccounts(cmd, conn, out, "users", head, func(a account) []string {
				return []string{a.ID, a.Name, a.ProjectName, a.Role, a.CreatedAt}
			})
		},
	}
	out.AddFlag(c)
	return c
}
