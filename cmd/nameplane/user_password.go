package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newUserPassword does not ask for the old password: an admin runs it, also for a user who has forgotten it.
func newUserPassword(conn *connection) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "password NAME",
		Short: "Set the password of a user",
		Long:  "Set the password of a user, and end the sessions that used the old one.\n\n" + passwordLong,
		Example: `  nameplane user password alice
  nameplane user password alice --password-file alice.pw`,
		Args: cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			// Look up the user first. Otherwise a user would type a password twice after a typing error in the name.
			u, err := cl.findAccount(cmd.Context(), "users", args[0])
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, file)
			if err != nil {
				return err
			}
			in := map[string]string{"password": password}
			if err := cl.call(cmd.Context(), http.MethodPatch, "/access/v1/users/"+url.PathEscape(u.ID), in, nil); err != nil {
				return err
			}
			return cli.Say(cmd, "user %s has a new password\n", u.Name)
		}),
	}
	c.Flags().StringVar(&file, "password-file", "", "`FILE` whose first line is the password")
	return c
}
