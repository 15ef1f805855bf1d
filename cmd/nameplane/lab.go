package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/lab"
	"github.com/nameplane/nameplane/internal/resolve/iterate"
)

const labLong = `Run an internet of your own, to try scan, analyze and compare in.

A lab has root servers, com, net, org and test, domains that are in order and one for
nearly everything that can be wrong with a domain, registries that answer by RDAP and
WHOIS, and caching resolvers, all at their famous addresses. It is on loopback addresses
of this machine, needs no rights, and nothing leaves it: with --lab the commands that
look at domains reach the lab or nothing.`

func newLabCommand() *cobra.Command {
	c := cli.NewGroup("lab", "Run an internet of your own to try things in", labLong,
		`  nameplane lab up
  nameplane lab list
  nameplane scan --lab bad.com
  nameplane lab flip www.example.com A 93.184.10.99`)
	c.AddCommand(newLabUp(), newLabList(), newLabFlip())
	return c
}

// addLabDir adds --dir.
func addLabDir(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "dir", labDir, "`FOLDER` by which the other commands find the lab")
}

const labUpLong = `Start the lab and print what is in it. It runs until it is interrupted.

All its DNS servers are on one port, each on an address of its own (127.53.0.1 and those
that follow), so that dig and others can ask them; the file lab.json in its folder says
which is where. The certificate of its authority is there, too: ca.pem.`

func newLabUp() *cobra.Command {
	var dir string
	var port uint16
	c := &cobra.Command{
		Use:   "up [--dir FOLDER]",
		Short: "Start a lab",
		Long:  labUpLong,
		Example: `  nameplane lab up
  nameplane lab up --dir /tmp/lab --port 0`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			l, err := startLab(ctx, lab.Options{Dir: dir, Port: port})
			if err != nil {
				return err
			}
			if err := announceLab(cmd, l, dir); err != nil {
				cancel()
				return errors.Join(err, l.Wait())
			}
			return l.Wait()
		},
	}
	addLabDir(c, &dir)
	c.Flags().Uint16Var(&port, "port", labPort, "`PORT` of the DNS servers; 0: any that is free")
	return c
}

// labPort is free on most machines, and above those that need rights.
const labPort = 5310

// startLab starts a lab, and knows what may keep it from starting.
func startLab(ctx context.Context, o lab.Options) (*lab.Lab, error) {
	l, err := lab.Start(ctx, o)
	switch {
	case errors.Is(err, lab.ErrRunning):
		return nil, cli.Fail("use that one, or give another folder with --dir", "a lab is running in %s already", o.Dir)
	case err != nil:
		return nil, &cli.Failure{Code: cli.ExitError, Text: err.Error(), Hint: "--port 0 takes ports that are free", Err: err}
	}
	return l, nil
}

// announceLab prints what a lab has, and how to use it.
func announceLab(cmd *cobra.Command, l *lab.Lab, dir string) error {
	t := cli.NewTable(cmd.OutOrStdout(), "DOMAIN", "WHAT IS WRONG", "TRY")
	addDomains(t, l.Domains, dir)
	if err := t.Flush(); err != nil {
		return err
	}
	return cli.Say(cmd, "The lab is up, with %d domains and %d resolvers. Try its commands in another terminal; Ctrl-C ends it.", len(l.Domains), len(l.Resolvers))
}

// addDomains adds a row for each domain: those that are in order first, as the table begins with them.
func addDomains(t *cli.Table, domains []lab.Domain, dir string) {
	for _, d := range domains {
		wrong := d.Wrong
		if wrong == "" {
			wrong = "nothing"
		}
		t.Row(d.Name, wrong, inLab(d.Try, dir))
	}
}

// inLab is a command line for the lab of a folder.
func inLab(line, dir string) string {
	flag := " --lab"
	if dir != labDir {
		flag += "=" + dir
	}
	words := strings.SplitN(line, " ", 3)
	if len(words) < 3 {
		return line + flag
	}
	return words[0] + " " + words[1] + flag + " " + words[2]
}

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
				return cli.PrintJSON(cmd.OutOrStdout(), labReply{l.Domains, l.Hints, l.Anchor, l.Resolvers, l.Places()})
			}
			t := cli.NewTable(cmd.OutOrStdout(), "DOMAIN", "WHAT IS WRONG", "TRY")
			addDomains(t, l.Domains, dir)
			return t.Flush()
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

const labFlipLong = `Change the records of a name at all authorities for its zone, to watch caches follow. The
TTL stays as it was, and the serial goes up. Without data the records are removed.

The resolvers of the lab go on with what they hold until it has run out.`

func newLabFlip() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "flip NAME TYPE [DATA]...",
		Short: "Change a record at the authorities of a lab",
		Long:  labFlipLong,
		Example: `  nameplane lab flip www.example.com A 93.184.10.99
  nameplane lab flip www.example.com TXT '"two words"'
  nameplane lab flip www.example.com A`,
		Args: cli.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := dnsname.Parse(args[0])
			if err != nil {
				return cli.Usage(cmd, "%q is not a name: %s", args[0], err)
			}
			typ, err := parseType(args[1])
			if err != nil {
				return err
			}
			l, err := loadLab(dir)
			if err != nil {
				return err
			}
			n, err := l.Flip(cmd.Context(), name, typ, args[2:])
			if err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
			return cli.Say(cmd, "changed %s %s at %d servers", name, typ, n)
		},
	}
	addLabDir(c, &dir)
	return c
}
