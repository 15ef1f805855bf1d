package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newProjectCommand() *cobra.Command {
	c := cli.NewGroup("project", "Manage projects", `Projects own zones. Tokens and users act for one project and see its zones only; those
with the role admin may act for all. These commands need that role.`,
		`  nameplane project create web --description "the web team"
  nameplane token create web-ci --project web
  nameplane zone create example.org --project web`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newProjectCreate(conn), newProjectList(conn), newProjectDelete(conn))
	return c
}

func newProjectCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var description string
	c := &cobra.Command{
		Use:     "create NAME",
		Short:   "Create a project",
		Long:    `Create a project. It has no zones, users or tokens yet.`,
		Example: `  nameplane project create web --description "the web team"`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			in := map[string]string{"name": args[0], "description": description}
			p, raw, err := cl.createAccount(cmd.Context(), "projects", in)
			if err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), raw)
			}
			return cli.Say(cmd, "created project %s (%s)\n", p.Name, p.ID)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&description, "description", "", "a `TEXT` for people")
	return c
}

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

func newProjectDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a project",
		Long:    `Delete a project, given by name or id. It must not own zones, users or valid tokens.`,
		Example: `  nameplane project delete web`,
	}, "projects", "deleted")
}
