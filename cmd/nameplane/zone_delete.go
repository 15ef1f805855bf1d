package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func newZoneDelete(conn *connection) *cobra.Command {
	var out cli.Format
	var yes bool
	c := &cobra.Command{
		Use:   "delete NAME",
		Short: "Delete a zone with all its records",
		Long: `Delete a zone with all its records and its history. The server stops answering for it
at once. There is no way back but an export or a backup made before.

On a terminal the command asks first, unless --yes is given.`,
		Example: `  nameplane zone export example.org example.org.zone && nameplane zone delete example.org`,
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if !yes && cli.IsTerminal(cmd.InOrStdin()) {
				fmt.Fprintf(cmd.ErrOrStderr(), "Delete %s with all its records and history? [y/N] ", z.Name)
				answer, _ := bufio.NewReader(cmd.InOrStdin()).ReadString('\n') // no answer is a no
				if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
					return cli.Fail("", "%s was not deleted", z.Name)
				}
			}
			var deleted zoneReply
			if err := cl.call(cmd.Context(), http.MethodDelete, "/v2/zones/"+z.ID, nil, &deleted); err != nil {
				return err
			}
			return out.Say(cmd, deleted.raw, "deleted %s\n", z.Name)
		},
	}
	out.AddFlag(c)
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}
