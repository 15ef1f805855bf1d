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

const resolversCheckLong = `Query every address of the list for the SOA record of the root, at most twice. Show which
addresses answer, how fast, and the name of the instance that answered.

Exit status: 0 all answer, 1 some do not answer, 3 none answers: there is no network, or
it blocks DNS.`

// newResolversCheck queries the SOA record of the root: every resolver has it in its cache, no filter blocks it, and no
// domain owner sees the query.
func newResolversCheck() *cobra.Command {
	var out cli.Format
	var file, labDir string
	c := &cobra.Command{
		Use:   "check",
		Short: "Check which resolvers answer",
		Long:  resolversCheckLong,
		Example: `  nameplane resolvers check
  nameplane resolvers check --lab`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, ex, err := resolversToCheck(file, labDir)
			if err != nil {
				return err
			}
			health := resolvers.Check(cmd.Context(), ex, list)
			if out.JSON() {
				err = cli.PrintJSON(cmd.OutOrStdout(), map[string]any{"resolvers": health})
			} else {
				err = printHealth(cmd, health)
			}
			if err != nil {
				return err
			}
			// The table is printed first: with a failure, it shows which addresses do not answer.
			return healthError(health)
		},
	}
	out.AddFlag(c)
	addResolversFlag(c, &file)
	addLabFlag(c, &labDir)
	return c
}

// resolversToCheck returns the resolvers of the lab in dir, or of the list in file if dir is empty.
func resolversToCheck(file, dir string) ([]resolvers.Resolver, resolve.Exchanger, error) {
	if dir == "" {
		list, err := source.Resolvers(file)
		if err != nil {
			return nil, nil, err
		}
		// No lab: the zero Client uses the network of this machine.
		return list.Resolvers, &resolve.Client{}, nil
	}
	l, err := loadLab(dir)
	if err != nil {
		return nil, nil, err
	}
	return source.LabResolvers(l), &resolve.Client{Dial: l.Dial, Roots: l.Roots}, nil
}

// printHealth shows the problem of an address instead of its state: a timeout and a refusal have different causes.
func printHealth(cmd *cobra.Command, all []resolvers.Health) error {
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

// healthError returns the failure for the exit status if resolvers do not answer.
func healthError(all []resolvers.Health) error {
	answering := 0
	for _, h := range all {
		if h.Answers {
			answering++
		}
	}
	switch {
	// One working resolver proves that DNS works here. With none, the list is probably right and the network is wrong.
	case answering == 0:
		return &cli.Failure{Code: cli.ExitUnknown, Text: "no resolver answers",
			Hint: "is there a network, and does it allow DNS?"}
	case answering < len(all):
		return &cli.Failure{Code: cli.ExitWarning,
			Text: fmt.Sprintf("%d of %d addresses do not answer", len(all)-answering, len(all))}
	}
	return nil
}
