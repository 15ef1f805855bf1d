package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newProjectCreate creates an empty project. Zones, users and tokens name their project when they are created.
func newProjectCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var description string
	c := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a project",
		Long:    `Create a project without zones, users or tokens.`,
		Example: `  nameplane project create web --description "the web team"`,
		Args:    cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			// An absent description is stored as an empty one, so an empty flag needs no special case.
			in := map[string]string{"name": args[0], "description": description}
			p, raw, err := cl.createAccount(cmd.Context(), "projects", in)
			if err != nil {
				return err
			}
			return out.Say(cmd, raw, "created project %s (%s)\n", p.Name, p.ID)
		}),
	}
	out.AddFlag(c)
	c.Flags().StringVar(&description, "description", "", "`TEXT` that describes the project")
	return c
}
