package main

import "github.com/spf13/cobra"

// newUserDelete returns the command without a confirmation, unlike zone delete: zones belong to the project and not to
// the user, so no data is lost.
func newUserDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a user",
		Long:    `Delete a user by name or id, and end all of its sessions.`,
		Example: `  nameplane user delete alice`,
	}, "users", "deleted")
}
