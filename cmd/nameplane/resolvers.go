package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/explain/source"
	"github.com/nameplane/nameplane/internal/explain/words"
	"github.com/nameplane/nameplane/internal/resolve"
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

const resolversListLong = `List resolvers: where they are, whether they filter, and their addresses. Answers of
those that filter are shown and not counted, and so are those of resolvers with "no
vote", which may be altered on the way to us.`

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
			return cli.Say(cmd, "%s", list)
		},
	}
	out.AddFlag(c)
	addResolversFlag(c, &file)
	return c
}

func remark(r resolvers.Resolver) string {
	var words []string
	if r.Filter {
		words = append(words, "filters")
	}
	if !r.Vote && !r.Filter {
		words = append(words, "no vote")
	}
	return strings.Join(words, ", ")
}

func addressList(r resolvers.Resolver) string {
	var words []string
	for _, a := range append(append([]netip.Addr{}, r.V4...), r.V6...) {
		words = append(words, a.String())
	}
	return strings.Join(words, " ")
}

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
