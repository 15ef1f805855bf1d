package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneDelete reads the zone before it asks, so that the question has the full name of an existing zone.
func newZoneDelete(conn *connection) *cobra.Command {
	var out cli.Format
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a zone with all its records",
		Long: `Delete a zone with all its records and its history. The server immediately stops
answering for it. Only an earlier export or backup can restore the zone.

On a terminal the command asks for confirmation, unless --yes is set.`,
		Example: `  nameplane zone export example.org example.org.zone && nameplane zone delete example.org`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			// A script cannot answer. It ran the command on purpose, so without a terminal there is no question.
			if !yes && cli.IsTerminal(cmd.InOrStdin()) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Delete %s with all its records and history? [y/N] ", z.Name)
				answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // an empty answer means no
				if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
					return cli.Fail("", "%s was not deleted", z.Name)
				}
			}
			var deleted zoneReply
			// The API deletes by id, so a zone that was deleted and created again since openZone stays.
			if err := cl.call(cmd.Context(), http.MethodDelete, "/v2/zones/"+z.ID, nil, &deleted); err != nil {
				return err
			}
			return out.Say(cmd, deleted.raw, "deleted %s\n", z.Name)
		},
	}
	out.AddFlag(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	return c
}
