package main

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newRecordList prints a line for each record and not for each set, as a zone file has it, so that grep and sort are
// useful.
func newRecordList(conn *connection) *cobra.Command {
	var out cli.Format
	var name, typ string
	c := &cobra.Command{
		Use:   "list ZONE",
		Short: "List the records of a zone",
		Long: `List the records of a zone, sorted by name, one per line. Records without their own TTL
are shown with the TTL of the zone.

With -o json the output is an array of record sets in the format of the API.`,
		Example: `  nameplane record list example.org
  nameplane record list example.org --name www
  nameplane record list example.org --type MX -o json | jq -r '.[].records[]'`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Check the filters before the first request, so that a typing error needs no server.
			q, err := recordQuery(args[0], name, typ)
			if err != nil {
				return err
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			path := "/v2/zones/" + z.ID + "/recordsets?" + q.Encode()
			return cl.list(cmd, out, path, "recordsets", "no records", []string{"NAME", "TTL", "TYPE", "DATA"},
				// The zone is known already, so a set without its own TTL is shown with the TTL that clients see.
				func(item json.RawMessage) ([][]string, error) { return recordRows(item, z.TTL) })
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&name, "name", "",
		"list only the records of this `NAME`: relative to the zone, fully qualified, or @")
	c.Flags().StringVar(&typ, "type", "", "list only the records of this `TYPE`")
	return c
}

// recordQuery returns the query parameters for a list of records, filtered by name and type if they are not empty.
func recordQuery(zoneArg, name, typ string) (url.Values, error) {
	// 1000 is the largest page that the API returns.
	q := url.Values{"limit": {"1000"}, "sort_key": {"name"}}
	if typ != "" {
		t, err := parseType(typ)
		if err != nil {
			return nil, err
		}
		q.Set("type", t.String())
	}
	if name != "" {
		z, err := parseZone(zoneArg)
		if err != nil {
			return nil, err
		}
		n, err := parseOwner(name, z)
		if err != nil {
			return nil, err
		}
		// The API compares full names. A relative name would match nothing.
		q.Set("name", n.String())
	}
	return q, nil
}

// recordRows converts a record set to table rows, one for each record.
func recordRows(item json.RawMessage, zoneTTL uint32) ([][]string, error) {
	var s setReply
	if err := json.Unmarshal(item, &s); err != nil {
		return nil, err
	}
	if s.TTL == nil {
		s.TTL = &zoneTTL
	}
	var rows [][]string
	for _, r := range s.Records {
		rows = append(rows, []string{s.Name, fmt.Sprint(*s.TTL), s.Type, r})
	}
	return rows, nil
}
