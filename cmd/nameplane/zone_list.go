package main

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneList reads all pages: a list that ended after the first page of the API would seem complete.
func newZoneList(conn *connection) *cobra.Command {
	var out cli.Format
	var all bool
	var name string
	c := &cobra.Command{
		Use:   "list",
		Short: "List zones",
		Long: `List the zones of the project of the token, sorted by name.

With -o json the output is an array of zones in the format of the API.`,
		Example: `  nameplane zone list
  nameplane zone list --name '*.example.org.'
  nameplane zone list -o json | jq -r '.[].name'`,
		Args: cli.Args(0, 0),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, _ []string) error {
			// The server refuses this header for tokens without the role admin. An error is better than a list that silently has
			// only the zones of one project.
			cl.allProjects = all
			// 1000 is the largest page that the API returns.
			q := url.Values{"limit": {"1000"}, "sort_key": {"name"}}
			if name != "" {
				q.Set("name", name)
			}
			return cl.list(cmd, out, "/v2/zones?"+q.Encode(), "zones", "no zones; `nameplane zone create NAME` creates one",
				[]string{"NAME", "SERIAL", "TTL", "EMAIL", "STATUS", "PROJECT"}, zoneRow)
		}),
	}
	out.AddFlag(c)
	c.Flags().BoolVar(&all, "all-projects", false, "list the zones of all projects (administrators only)")
	c.Flags().StringVar(&name, "name", "", "list only zones with this `NAME`; * matches any characters")
	return c
}

// zoneRow converts a zone to a table row.
func zoneRow(item json.RawMessage) ([][]string, error) {
	var z zoneReply
	err := json.Unmarshal(item, &z)
	return [][]string{{z.Name, fmt.Sprint(z.Serial), fmt.Sprint(z.TTL), z.Email, z.Status, z.ProjectID}}, err
}
