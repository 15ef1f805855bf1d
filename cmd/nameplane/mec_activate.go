package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newMecActivate is newMecDeactivate with another state: the server has one call for both.
func newMecActivate(conn *connection) *cobra.Command {
	return newMecState(conn, "activate", "ACTIVE")
}

// newMecState returns the command that sets the state of rules: activate or deactivate.
func newMecState(conn *connection, verb, state string) *cobra.Command {
	var out cli.Format
	var app string
	effect := map[string]string{"ACTIVE": "served", "INACTIVE": "stored but not served"}[state]
	c := &cobra.Command{
		Use:   verb + " --app ID [RULE]",
		Short: strings.ToUpper(verb[:1]) + verb[1:] + " rules of an application",
		Long: fmt.Sprintf(`Set a rule, or all rules of the application in one step if RULE is missing, to %s.
The rules are then %s.`, state, effect),
		Example: fmt.Sprintf(`  nameplane mec %[1]s --app game-1 rule1
  nameplane mec %[1]s --app game-1`, verb),
		Args: cli.Args(0, 1),
		RunE: withApp(conn, &app, func(cmd *cobra.Command, cl *client, args []string) error {
			// The body has only the state: a client that sent the whole rule back could undo a change that another client made
			// in between.
			body := map[string]string{"state": state}
			var rules []json.RawMessage
			var err error
			if len(args) == 0 {
				err = cl.call(cmd.Context(), http.MethodPut, rulesPath(app), body, &rules)
			} else {
				// The reply for one rule is an object and not an array. Both cases print the same form.
				rules = make([]json.RawMessage, 1)
				err = cl.call(cmd.Context(), http.MethodPut, rulePath(app, args[0]), body, &rules[0])
			}
			if err != nil {
				return err
			}
			return printRules(cmd, out, app, rules)
		}),
	}
	out.AddFlag(c)
	appFlag(c, &app, true)
	return c
}
