package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

func newZoneShow(conn *connection) *cobra.Command {
	var out format
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a zone",
		Long: `Show what is known of a zone, but for its records: "nameplane record list NAME" and
"nameplane zone export NAME" show those.`,
		Example: `  nameplane zone show example.org
  nameplane zone show example.org -o json | jq .serial`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, z, _, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if out.json() {
				return printJSON(cmd.OutOrStdout(), z.raw)
			}
			return printPairs(cmd.OutOrStdout(), [][2]string{
				{"name", z.Name}, {"serial", fmt.Sprint(z.Serial)}, {"ttl", fmt.Sprint(z.TTL)}, {"email", z.Email},
				{"type", z.Type}, {"status", z.Status}, {"description", z.Description}, {"created", z.CreatedAt},
				{"updated", z.UpdatedAt}, {"project", z.ProjectID}, {"id", z.ID},
			})
		},
	}
	out.addFlag(c)
	return c
}

// printPairs prints the fields of one thing, without those that are empty.
func printPairs(w io.Writer, pairs [][2]string) error {
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-12s %s\n", p[0], printable(p[1])); err != nil {
			return err
		}
	}
	return nil
}
