package main

import "github.com/spf13/cobra"

// newProjectList prints the id first: OpenStack clients and the history of zones name a project by its id.
func newProjectList(conn *connection) *cobra.Command {
	return newListCommand(conn, &cobra.Command{
		Short:   "List projects",
		Long:    `List all projects, sorted by name.`,
		Example: `  nameplane project list`,
	}, "projects", []string{"ID", "NAME", "DESCRIPTION", "CREATED"},
		func(a account) []string {
			return []string{a.ID, a.Name, a.Description, a.CreatedAt}
		})
}
