package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

// newRecordDelete fails if there is nothing to delete: a typing error in the name must not pass for a success.
func newRecordDelete(conn *connection) *cobra.Command {
	var out cli.Format
	var managed bool
	c := &cobra.Command{
		Use:   "delete ZONE NAME [TYPE]",
		Short: "Delete the records of a name",
		Long: `Delete the records of a name, or only those of one type, in one atomic step. The command
keeps names below it. At the apex of the zone, @, it keeps the SOA and NS records, which
every zone needs.

NAME is relative to the zone, or fully qualified.`,
		Example: `  nameplane record delete example.org www
  nameplane record delete example.org @ MX`,
		Args: cli.Args(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Check the type before the first request, so that a typing error needs no server.
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
			cl.editManaged = managed
			// All sets are deleted in one change. With one request per type, a resolver could see a name with only half of its
			// records.
			changes, err := cl.deletions(cmd.Context(), z, name, typ)
			if err != nil {
				return err
			}
			return cl.change(cmd, out, z, "deleted", changes...)
		},
	}
	out.AddFlag(c)
	addManagedFlag(c, &managed)
	return c
}

// deletions returns the changes that delete the record sets of a name.
func (c *client) deletions(ctx context.Context, z zoneReply, name dnsname.Name, typ string) ([]setChange, error) {
	sets, err := c.findSets(ctx, z, name, typ)
	var changes []setChange
	for _, s := range sets {
		// With an explicit type the command does not skip anything: the server refuses, and the user sees why.
		required := s.Name == z.Name && (s.Type == "SOA" || s.Type == "NS")
		if typ != "" || !required {
			changes = append(changes, setChange{Action: "delete", Name: s.Name, Type: s.Type})
		}
	}
	if err == nil && len(changes) == 0 {
		what := "records"
		if typ != "" {
			what += " of type " + typ
		}
		err = cli.Fail("`nameplane record list "+z.Name+"` shows the records", "%s has no %s to delete", name, what)
	}
	return changes, err
}

// addManagedFlag adds --edit-managed, which allows changes to records that the server manages itself.
func addManagedFlag(c *cobra.Command, managed *bool) {
	c.Flags().BoolVar(managed, "edit-managed", false,
		"allow changes to the records that the server manages itself: the NS set of the zone")
}
