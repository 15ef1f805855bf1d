package main

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newZoneList(conn *connection) *cobra.Command {
	var out cli.Format
	var all bool
	var name string
	c := &cobra.Command{
		Use:   "list",
		Short: "List zones",
		Long: `List the zones of the token's project, by name.

With -o json the output is an array of zones as the API describes them.`,
		Example: `  nameplane zone list
  nameplane zone list --name '*.example.org.'
  nameplane zone list -o json | jq -r '.[].name'`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			cl.all = all
			q := url.Values{"limit": {"1000"}, "sort_key": {"name"}}
			if name != "" {
				q.Set("name", name)
			}
			l := cli.NewListing(cmd.OutOrStdout(), out, "NAME", "SERIAL", "TTL", "EMAIL", "STATUS", "PROJECT")
			err = cl.pages(cmd.Context(), "/v2/zones?"+q.Encode(), "zones", func(items []json.RawMessage) error {
				return l.Page(items, zoneRow)
			})
			return l.End(err, "no zones; `nameplane zone create NAME` makes one")
		},
	}
	out.AddFlag(c)
	c.Flags().BoolVar(&all, "all-projects", false, "list the zones of all projects (administrators only)")
	c.Flags().StringVar(&name, "name", "", "only zones with this `NAME`, in which * stands for any characters")
	return c
}

func zoneRow(item json.RawMessage) ([][]string, error) {
	var z zoneReply
	err := json.Unmarshal(item, &z)
	return [][]string{{z.Name, fmt.Sprint(z.Serial), fmt.Sprint(z.TTL), z.Email, z.Status, z.ProjectID}}, err
}
