package main

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newRecordList(conn *connection) *cobra.Command {
	var out cli.Format
	var name, typ string
	c := &cobra.Command{
		Use:   "list ZONE",
		Short: "List the records of a zone",
		Long: `List the records of a zone, in the order of their names, one per line. Records that
have no TTL of their own are shown with the zone's.

With -o json the output is an array of record sets as the API describes them.`,
		Example: `  nameplane record list example.org
  nameplane record list example.org --name www
  nameplane record list example.org --type MX -o json | jq -r '.[].records[]'`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
				func(item json.RawMessage) ([][]string, error) { return recordRows(item, z.TTL) })
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&name, "name", "", "only records of this `NAME`: whole, relative to the zone, or @")
	c.Flags().StringVar(&typ, "type", "", "only records of this `TYPE`")
	return c
}

func recordQuery(zoneArg, name, typ string) (url.Values, error) {
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
		q.Set("name", n.String())
	}
	return q, nil
}

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
