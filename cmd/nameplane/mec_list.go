package main

import (
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newMecList prints one row for each rule, also for all applications, so that grep finds an application by any of its
// names.
func newMecList(conn *connection) *cobra.Command {
	var out cli.Format
	var app string
	c := &cobra.Command{
		Use:   "list [--app ID]",
		Short: "List the rules of applications",
		Long: `List the rules of one application instance, or of all instances. A rule without a TTL
never expires, and is served with a TTL of 30 seconds. A zone of this server silences
the rules for names in the zone: they are stored but not served while the zone exists.

With -o json and --app the output is an array of rules in the format of ETSI MEC 011.
Without --app it is an array of applications with their rules.`,
		Example: `  nameplane mec list
  nameplane mec list --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f -o json`,
		Args: cli.Args(0, 0),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, _ []string) error {
			// Only the call for all applications has pages. The rules of one application always fit into one reply.
			if app == "" {
				return cl.list(cmd, out, "/mep/config", "applications", "no rules", ruleHead, appRows)
			}
			var rules []json.RawMessage
			if err := cl.call(cmd.Context(), http.MethodGet, rulesPath(app), nil, &rules); err != nil {
				return err
			}
			return printRules(cmd, out, app, rules)
		}),
	}
	out.AddFlag(c)
	appFlag(c, &app, false)
	return c
}

// appReply is an application with its rules. They are not decoded here, because ruleRows decodes them for both lists.
type appReply struct {
	App   string            `json:"appInstanceId"`
	Rules []json.RawMessage `json:"dnsRules"`
}

// appRows converts an application to table rows, one for each rule.
func appRows(item json.RawMessage) ([][]string, error) {
	var a appReply
	if err := json.Unmarshal(item, &a); err != nil {
		return nil, err
	}
	var rows [][]string
	for _, r := range a.Rules {
		row, err := ruleRows(a.App)(r)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row...)
	}
	return rows, nil
}
