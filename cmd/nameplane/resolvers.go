package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const resolversLong = `The recursive resolvers that "nameplane compare" asks: a list with a date, since they
come and go. A list of your own, in the same format, is read with --resolvers FILE.`

func newResolversCommand() *cobra.Command {
	c := cli.NewGroup("resolvers", "List and check the resolvers that compare asks", resolversLong,
		`  nameplane resolvers list
  nameplane resolvers check`)
	c.AddCommand(newResolversList(), newResolversCheck())
	return c
}
