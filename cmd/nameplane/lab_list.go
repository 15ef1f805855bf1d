package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

const labListLong = `Print the domains of the lab that is running, what is wrong with each, and a command to
see it with. With -o json its root servers and their DS record, its resolvers, and where
everything is are there, too.`

func newLabList() *cobra.Command {
	var dir string
	var out cli.Format
	c := &cobra.Command{
		Use:   "list [--dir FOLDER]",
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
				return cli.PrintJSON(cmd.OutOrStdout(), labReply{l.Domains, l.Hints, l.Anchor, l.Resolvers, l.Addrs()})
			}
			return printDomains(cmd.OutOrStdout(), l.Domains, dir)
		},
	}
	addLabDir(c, &dir)
	out.AddFlag(c)
	return c
}

// labReply is a lab for programs.
type labReply struct {
	Domains   []lab.Domain      `json:"domains"`
	Hints     []iterate.Host    `json:"hints"`
	Anchor    string            `json:"anchor"`
	Resolvers []lab.Resolver    `json:"resolvers"`
	Places    map[string]string `json:"places"` // where the famous addresses are
}
