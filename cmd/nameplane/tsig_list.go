package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newTSIGList leaves the secrets out of the table, so that it can be shown to others.
func newTSIGList(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "list",
		Short: "List TSIG keys",
		Long: `List all TSIG keys with their zones and limits, sorted by name. The table does not have
the secrets; the output of -o json does.`,
		Example: `  nameplane tsig list
  nameplane tsig list -o json | jq -r '.[] | select(.scope == "POOL") | .name'`,
		Args: cli.Args(0, 0),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, _ []string) error {
			// The zones of a key may belong to any project, and their names are read one by one below.
			cl.allProjects = true
			return cl.list(cmd, out, tsigPath+"?limit=1000&sort_key=name", "tsigkeys",
				"no TSIG keys; `nameplane tsig create NAME` creates one",
				[]string{"NAME", "ALGORITHM", "ZONES", "NAMES", "TYPES", "CREATED"},
				func(item json.RawMessage) ([][]string, error) {
					var k tsigKey
					err := json.Unmarshal(item, &k)
					return [][]string{{k.Name, k.Algorithm, cl.zoneNames(cmd.Context(), k), limitText(k.Names), limitText(k.Types),
						k.CreatedAt}}, err
				})
		}),
	}
	out.AddFlag(c)
	return c
}
