package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newTSIGShow prints the secret, because a client that is set up later needs it. Only an admin can read keys.
func newTSIGShow(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a TSIG key",
		Long:    `Show a TSIG key by its name or id, with its secret.`,
		Example: `  nameplane tsig show update.example.org`,
		Args:    cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			// The zones of a key may belong to any project.
			cl.allProjects = true
			k, err := cl.findKey(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), k.raw)
			}
			return cli.PrintPairs(cmd.OutOrStdout(), [][2]string{
				{"name", k.Name}, {"algorithm", k.Algorithm}, {"secret", k.Secret}, {"zones", cl.zoneNames(cmd.Context(), k)},
				{"names", limitText(k.Names)}, {"types", limitText(k.Types)}, {"created", k.CreatedAt}, {"updated", k.UpdatedAt},
				{"id", k.ID},
			})
		}),
	}
	out.AddFlag(c)
	return c
}
