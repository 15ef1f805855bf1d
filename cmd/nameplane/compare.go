package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const compareLong = `Compare what the authority says of a name with what recursive resolvers hold: who is
current, who has an older answer or "does not exist", who filters, until when, and when
everyone sees the new answer.

The authority is asked first. Resolvers are not asked for a name that it does not have:
that would make them remember that it does not exist. --force asks them all the same.

A public address stands for many caches; several questions each show some of them.` + reportLong

func newCompareCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Compare}
	c := &cobra.Command{
		Use:   "compare NAME [TYPE]...",
		Short: "Compare resolvers of the world with the authority",
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
