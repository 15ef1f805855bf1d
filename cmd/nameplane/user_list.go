package main

import "github.com/spf13/cobra"

// newUserList prints the role, which decides whether a user can change zones or only read them.
func newUserList(conn *connection) *cobra.Command {
	return newListCommand(conn, &cobra.Command{
		Short:   "List users",
		Long:    `List all users with their project and role, sorted by name.`,
		Example: `  nameplane user list`,
	}, "users", []string{"ID", "NAME", "PROJECT", "ROLE", "CREATED"},
		func(a account) []string {
			return []string{a.ID, a.Name, a.ProjectName, a.Role, a.CreatedAt}
		})
}
