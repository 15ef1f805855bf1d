package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

const labListLong = `Print the domains of a running lab, the problem of each one, and a command that shows it.

With -o json the output also has the root servers, the DS record of the root, the
resolvers, and the loopback address of every simulated address.`

func newLabList() *cobra.Command {
	var dir string
	var out cli.Format
	c := &cobra.Command{
		Use:   "list [--dir DIR]",
		Short: "List the domains of a lab",
		Long:  labListLong,
		Example: `  nameplane lab list
  nameplane lab list -o json`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := loadLab(dir)
			if err != nil {
				return err
			}
			if out.JSON() {
				// Programs get what they need to send their own queries to the lab; the table for people has only the domains.
				reply := labReply{l.Domains, l.Hints, l.Anchor, l.Resolvers, l.Addrs()}
				return cli.PrintJSON(cmd.OutOrStdout(), reply)
			}
			return printDomains(cmd.OutOrStdout(), l.Domains, dir)
		},
	}
	addLabDir(c, &dir)
	out.AddFlag(c)
	return c
}

// labReply is the output of lab list -o json.
type labReply struct {
	Domains   []lab.Domain      `json:"domains"`
	Hints     []iterate.Host    `json:"hints"`
	Anchor    string            `json:"anchor"`
	Resolvers []lab.Resolver    `json:"resolvers"`
	Addresses map[string]string `json:"addresses"` // loopback address by simulated address
}
