package main

import "github.com/spf13/cobra"

func newProjectDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a project",
		Long:    `Delete a project, given by name or id. It must not own zones, users or valid tokens.`,
		Example: `  nameplane project delete web`,
	}, "projects", "deleted")
}
