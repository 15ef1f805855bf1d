package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const compareLong = `Compare the answers of recursive resolvers with those of the authoritative servers.

The report shows which resolvers have the current answer, which still have an older
answer or a cached "does not exist" and until when, which ones filter, and when all
resolvers will have the new answer.

The authoritative servers are queried first. If they do not have the name, the resolvers
are not queried, because they would cache that it does not exist. --force queries them
anyway.

A public resolver address has many caches behind it. Several queries to each address
show some of them.` + reportLong

// newCompareCommand has all flags of analyze, because a comparison begins with the answers of the authoritative
// servers.
func newCompareCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Compare}
	c := &cobra.Command{
		Use:   "compare NAME [TYPE]...",
		Short: "Compare resolvers with the authoritative servers",
		Long:  compareLong,
		Example: `  nameplane compare www.example.com
  nameplane compare www.example.com AAAA --local
  nameplane compare --lab www.moved.test
  nameplane compare www.example.com --resolvers ours.txt -o json`,
		Args: cli.Args(0, -1),
		RunE: l.run,
	}
	l.addFlags(c)
	l.source.addNameFlags(c)
	l.source.addCacheFlags(c)
	return c
}
