package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newUserCreate has no flag for the password: every user of the machine can read the arguments of a process.
func newUserCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var project, role, file string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a user",
		Long:  "Create a user.\n\n" + passwordLong,
		Example: `  nameplane user create alice
  nameplane user create alice --project web --role reader --password-file alice.pw`,
		Args: cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			password, err := readPassword(cmd, file)
			if err != nil {
				return err
			}
			in := map[string]any{"name": args[0], "role": role, "password": password}
			// Without the field, the server uses the project of the token. The command line does not know that project.
			if project != "" {
				in["project"] = project
			}
			u, raw, err := cl.createAccount(cmd.Context(), "users", in)
			if err != nil {
				return err
			}
			return out.Say(cmd, raw, "created user %s (%s), a %s of project %s\n", u.Name, u.ID, u.Role, u.ProjectName)
		}),
	}
	out.AddFlag(c)
	c.Flags().StringVar(&project, "project", "", "`PROJECT` of the user (default: that of the token in use)")
	c.Flags().StringVar(&role, "role", "member", "`ROLE`: reader, member or admin")
	c.Flags().StringVar(&file, "password-file", "", "`FILE` whose first line is the password")
	return c
}
