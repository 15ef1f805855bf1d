package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve"
)

const resolversCheckLong = `Ask every address of the list for the SOA of the root, at most twice, and tell which
answer, how fast, and what the instance that answered calls itself.

Exit status: 0 all answer, 1 some do not, 3 none does: no network, or somebody blocks DNS.`

func newResolversCheck() *cobra.Command {
	var out cli.Format
	var file, labDir string
	c := &cobra.Command{
		Use:   "check",
		Short: "Ask every resolver whether it answers",
		Long:  resolversCheckLong,
		Example: `  nameplane resolvers check
  nameplane resolvers check --lab`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, ex, err := whoToCheck(file, labDir)
			if err != nil {
				return err
			}
			health := resolvers.Check(cmd.Context(), ex, list)
			if out.JSON() {
				err = cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"resolvers": health})
			} else {
				err = showHealth(cmd, health)
			}
			if err != nil {
				return err
			}
			return verdictOn(health)
		},
	}
	out.AddFlag(c)
	addResolversFlag(c, &file)
	addLabFlag(c, &labDir)
	return c
}

func whoToCheck(file, dir string) ([]resolvers.Resolver, resolve.Exchanger, error) {
	if dir == "" {
		list, err := source.Resolvers(file)
		if err != nil {
			return nil, nil, err
		}
		return list.Resolvers, &resolve.Client{}, nil
	}
	l, err := loadLab(dir)
	if err != nil {
		return nil, nil, err
	}
	return source.LabResolvers(l), &resolve.Client{Dial: l.Dial, Roots: l.Roots}, nil
}

func showHealth(cmd *cobra.Command, all []resolvers.Health) error {
	t := cli.NewTable(cmd.OutOrStdout(), "ID", "ADDRESS", "STATE", "TIME", "INSTANCE")
	for _, h := range all {
		state := "answers"
		if !h.Answers {
			state = h.Problem
		}
		t.Row(h.ID, h.Addr.String(), state, words.Length(h.RTT.Round(time.Millisecond)), h.Instance)
	}
	return t.Flush()
}

func verdictOn(all []resolvers.Health) error {
	good := 0
	for _, h := range all {
		if h.Answers {
			good++
		}
	}
	switch {
	case good == 0:
		return &cli.Failure{Code: cli.ExitUnknown, Text: "no resolver answers", Hint: "is there a network, and does it let DNS through?"}
	case good < len(all):
		return &cli.Failure{Code: cli.ExitWarning, Text: fmt.Sprintf("%d of %d addresses do not answer", len(all)-good, len(all))}
	}
	return nil
}
