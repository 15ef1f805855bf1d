package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

func newRecordDelete(conn *connection) *cobra.Command {
	var out cli.Format
	var managed bool
	c := &cobra.Command{
		Use:   "delete ZONE NAME [TYPE]",
		Short: "Delete the records of a name",
		Long: `Delete the records of a name, or only those of one type, in one atomic step. Names
below it stay. At the zone itself, @, the SOA and NS records stay: they make the zone.

NAME is relative to the zone, or whole.`,
		Example: `  nameplane record delete example.org www
  nameplane record delete example.org @ MX`,
		Args: cli.Args(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			typ := ""
			if len(args) == 3 {
				t, err := parseType(args[2])
				if err != nil {
					return err
				}
				typ = t.String()
			}
			cl, z, name, err := conn.openOwner(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			cl.managed = managed
			changes, err := cl.deletions(cmd.Context(), z, name, typ)
			if err != nil {
				return err
			}
			var reply json.RawMessage
			if err := cl.change(cmd.Context(), z, changes, &reply); err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), reply)
			}
			return printChanged(cmd.OutOrStdout(), "deleted", reply)
		},
	}
	out.AddFlag(c)
	addManagedFlag(c, &managed)
	return c
}

// deletions are the changes that delete the sets of a name.
func (c *client) deletions(ctx context.Context, z zoneReply, name dnsname.Name, typ string) ([]setChange, error) {
	q := url.Values{"name": {name.String()}, "limit": {"1000"}}
	if typ != "" {
		q.Set("type", typ)
	}
	var changes []setChange
	err := c.pages(ctx, "/v2/zones/"+z.ID+"/recordsets?"+q.Encode(), "recordsets", func(items []json.RawMessage) error {
		for _, item := range items {
			var s setReply
			if err := json.Unmarshal(item, &s); err != nil {
				return err
			}
			makesZone := s.Name == z.Name && (s.Type == "SOA" || s.Type == "NS")
			if s.Name == name.String() && (typ != "" || !makesZone) { // the filter may be a pattern: *.example.org.
				changes = append(changes, setChange{Action: "delete", Name: s.Name, Type: s.Type})
			}
		}
		return nil
	})
	if err == nil && len(changes) == 0 {
		what := "records"
		if typ != "" {
			what += " of type " + typ
		}
		err = cli.Fail("`nameplane record list "+z.Name+"` shows what there is", "%s has no %s to delete", name, what)
	}
	return changes, err
}

// printChanged says what a batch did.
func printChanged(w io.Writer, verb string, reply json.RawMessage) error {
	var body struct {
		Zone       zoneReply  `json:"zone"`
		RecordSets []setReply `json:"recordsets"`
	}
	if err := json.Unmarshal(reply, &body); err != nil {
		return err
	}
	for _, s := range body.RecordSets {
		if _, err := fmt.Fprintf(w, "%s %s %s\n", verb, s.Name, s.Type); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s has serial %d\n", body.Zone.Name, body.Zone.Serial)
	return err
}

// addManagedFlag adds the flag for records that the server made itself.
func addManagedFlag(c *cobra.Command, managed *bool) {
	c.Flags().BoolVar(managed, "edit-managed", false, "change records that the server made itself too: the zone's NS set")
}
