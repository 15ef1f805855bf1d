package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/source"
)

const resolversListLong = `List the resolvers with their region, addresses, and whether they filter.

Answers of resolvers that filter are shown but not counted. Answers of resolvers with the
remark "no vote" are not counted either, because the network may alter them.`

// newResolversList has no --lab: "lab list -o json" has the resolvers of a lab.
func newResolversList() *cobra.Command {
	var out cli.Format
	var file string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the resolvers",
		Long:  resolversListLong,
		Example: `  nameplane resolvers list
  nameplane resolvers list --resolvers ours.txt -o json`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := source.Resolvers(file)
			if err != nil {
				return err
			}
			// JSON has the whole list with its date and sources; the table has what fits on a screen.
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), list)
			}
			t := cli.NewTable(cmd.OutOrStdout(), "ID", "OPERATOR", "REGION", "REMARK", "ADDRESSES")
			for _, r := range list.Resolvers {
				t.Row(r.ID, r.Operator, r.Region, remark(r), addressList(r))
			}
			if err := t.Flush(); err != nil {
				return err
			}
			// The last line has the date of the list, because the addresses of resolvers change.
			return cli.Say(cmd, "%s", list)
		},
	}
	out.AddFlag(c)
	addResolversFlag(c, &file)
	return c
}

// remark returns why the answers of a resolver are not counted. A filter comes first: it explains a missing vote.
func remark(r resolvers.Resolver) string {
	switch {
	case r.Filter:
		return "filters"
	case !r.Vote:
		return "no vote"
	}
	return ""
}

// addressList returns IPv4 addresses before IPv6 addresses, in the order of the list, so that tables can be compared.
func addressList(r resolvers.Resolver) string {
	var words []string
	for _, a := range slices.Concat(r.V4, r.V6) {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}
