package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneShow prints no records: a zone can have millions of them, and this command must stay fast in scripts.
func newZoneShow(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a zone",
		Long: `Show the properties of a zone. "nameplane record list NAME" and "nameplane zone export
NAME" show its records.`,
		Example: `  nameplane zone show example.org
  nameplane zone show example.org -o json | jq .serial`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), z.raw)
			}
			return cli.PrintPairs(cmd.OutOrStdout(), [][2]string{
				{"name", z.Name}, {"serial", fmt.Sprint(z.Serial)}, {"ttl", fmt.Sprint(z.TTL)}, {"email", z.Email},
				{"type", z.Type}, {"status", z.Status}, {"description", z.Description}, {"created", z.CreatedAt},
				{"updated", z.UpdatedAt}, {"project", z.ProjectID}, {"id", z.ID},
			})
		},
	}
	out.AddFlag(c)
	return c
}
