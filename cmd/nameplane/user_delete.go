package main

import "github.com/spf13/cobra"

func newUserDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a user",
		Long:    `Delete a user by name or id, and end all of its sessions.`,
		Example: `  nameplane user delete alice`,
	}, "users", "deleted")
}
