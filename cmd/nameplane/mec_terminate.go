package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newMecTerminate exists beside mec delete, because only the end of an instance may revoke its tokens. An application
// that changes its rules must keep its access.
func newMecTerminate(conn *connection) *cobra.Command {
	var app string
	c := &cobra.Command{
		Use:   "terminate --app ID",
		Short: "Remove an application with all its rules",
		Long: `Remove an application instance that has ended: its rules, subscriptions and tasks, in
one step. The tokens of the instance are revoked.`,
		Example: `  nameplane mec terminate --app game-1`,
		Args:    cli.Args(0, 0),
		RunE: withApp(conn, &app, func(cmd *cobra.Command, cl *client, _ []string) error {
			if err := cl.call(cmd.Context(), http.MethodDelete, appPath(app), nil, nil); err != nil {
				return err
			}
			return cli.Say(cmd, "terminated %s", app)
		}),
	}
	appFlag(c, &app, true)
	return c
}
