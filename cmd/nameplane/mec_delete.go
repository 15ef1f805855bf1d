package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newMecDelete(conn *connection) *cobra.Command {
	var app string
	c := &cobra.Command{
		Use:   "delete --app ID RULE...",
		Short: "Delete rules of an application",
		Long: `Delete rules of an application, one after the other. The server stops answering for the
name of a deleted rule, unless another application has an ACTIVE rule for it.`,
		Example: `  nameplane mec delete --app game-1 rule1 rule2`,
		Args:    cli.Args(1, -1),
		RunE: withApp(conn, &app, func(cmd *cobra.Command, cl *client, args []string) error {
			// The API has no call for several rules. Each deleted rule is printed at once, so that after an error
			// the user knows which ones are left.
			for _, rule := range args {
				if err := cl.call(cmd.Context(), http.MethodDelete, rulePath(app, rule), nil, nil); err != nil {
					return err
				}
				if err := cli.Say(cmd, "deleted %s", rule); err != nil {
					return err
				}
			}
			return nil
		}),
	}
	appFlag(c, &app, true)
	return c
}
