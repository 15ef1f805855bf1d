package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const resolversLong = `Show the recursive resolvers that "nameplane compare" queries. The list has a date,
because resolvers come and go. --resolvers FILE reads another list in the same format.`

// newResolversCommand has no flags for a server: the list of resolvers is part of the program.
func newResolversCommand() *cobra.Command {
	c := cli.NewGroup("resolvers", "List and check the resolvers that compare queries", resolversLong,
		`  nameplane resolvers list
  nameplane resolvers check`)
	c.AddCommand(newResolversList(), newResolversCheck())
	return c
}
