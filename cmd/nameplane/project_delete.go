package main

import "github.com/spf13/cobra"

// newProjectDelete leaves the check to the server, which refuses a project with zones, users or valid tokens: nobody
// could reach such zones afterwards.
func newProjectDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a project",
		Long: `Delete a project by name or id. A project with zones, users or valid tokens cannot be
deleted.`,
		Example: `  nameplane project delete web`,
	}, "projects", "deleted")
}
