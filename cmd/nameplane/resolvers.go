package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/explain/report"
	"github.com/nameplane/nameplane/internal/explain/resolvers"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve"
)

const resolversLong = `The recursive resolvers that "nameplane compare" asks: a list with a date, since they
come and go. A list of your own, in the same format, is read with --resolvers FILE.`

func newResolversCommand() *cobra.Command {
	c := newGroup("resolvers", "List and check the resolvers that compare asks", resolversLong,
		`  nameplane resolvers list
  nameplane resolvers check`)
	c.AddCommand(newResolversList(), newResolversCheck())
	return c
}

const resolversListLong = `List resolvers: where they are, whether they filter, and their addresses. Answers of
those that filter are shown and not counted, and so are those of resolvers with "no
vote", which may be altered on the way to us.`

func newResolversList() *cobra.Command {
	var out format
	var file string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the resolvers",
		Long:  resolversListLong,
		Example: `  nameplane resolvers list
  nameplane resolvers list --resolvers ours.txt -o json`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := readResolvers(file)
			if err != nil {
				return err
			}
			if out.json() {
				return printJSON(cmd.OutOrStdout(), list)
			}
			t := newTable(cmd.OutOrStdout(), "ID", "OPERATOR", "REGION", "REMARK", "ADDRESSES")
			for _, r := range list.Resolvers {
				t.row(r.ID, r.Operator, r.Region, remark(r), addressList(r))
			}
			if err := t.flush(); err != nil {
				return err
			}
			return say(cmd, "%s", list)
		},
	}
	out.addFlag(c)
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
	var out format
	var file, labDir string
	c := &cobra.Command{
		Use:   "check",
		Short: "Ask every resolver whether it answers",
		Long:  resolversCheckLong,
		Example: `  nameplane resolvers check
  nameplane resolvers check --lab`,
		Args: between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, ex, err := whoToCheck(file, labDir)
			if err != nil {
				return err
			}
			health := resolvers.Check(cmd.Context(), ex, list)
			if out.json() {
				err = printJSON(cmd.OutOrStdout(), map[string]any{"resolvers": health})
			} else {
				err = showHealth(cmd, health)
			}
			if err != nil {
				return err
			}
			return verdictOn(health)
		},
	}
	out.addFlag(c)
	addResolversFlag(c, &file)
	addLabFlag(c, &labDir)
	return c
}

func whoToCheck(file, dir string) ([]resolvers.Resolver, resolve.Exchanger, error) {
	if dir == "" {
		list, err := readResolvers(file)
		if err != nil {
			return nil, nil, err
		}
		return list.Resolvers, &resolve.Client{}, nil
	}
	l, err := loadLab(dir)
	if err != nil {
		return nil, nil, err
	}
	return labResolvers(l), &resolve.Client{Dial: l.Dial, Roots: l.Roots}, nil
}

// labResolvers are the resolvers of a lab. What is known of those with famous names is known of these, too.
func labResolvers(l *lab.Lab) (out []resolvers.Resolver) {
	famous := resolvers.Load()
	for _, r := range l.Resolvers {
		x, ok := famous.Find(r.Name)
		if !ok {
			x = resolvers.Resolver{Operator: r.Name, Vote: true}
		}
		x.ID, x.V4, x.V6 = r.Name, nil, nil
		for _, a := range r.Addrs {
			if a.Is4() {
				x.V4 = append(x.V4, a)
			} else {
				x.V6 = append(x.V6, a)
			}
		}
		out = append(out, x)
	}
	return out
}

func showHealth(cmd *cobra.Command, all []resolvers.Health) error {
	t := newTable(cmd.OutOrStdout(), "ID", "ADDRESS", "STATE", "TIME", "INSTANCE")
	for _, h := range all {
		state := "answers"
		if !h.Answers {
			state = h.Problem
		}
		t.row(h.ID, h.Addr.String(), state, report.Length(h.RTT.Round(time.Millisecond)), h.Instance)
	}
	return t.flush()
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
		return &failure{code: exitUnknown, text: "no resolver answers", hint: "is there a network, and does it let DNS through?"}
	case good < len(all):
		return &failure{code: exitWarning, text: fmt.Sprintf("%d of %d addresses do not answer", len(all)-good, len(all))}
	}
	return nil
}
