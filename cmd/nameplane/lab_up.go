package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
)

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
	if err := printDomains(cmd.OutOrStdout(), l.Domains, dir); err != nil {
		return err
	}
	return cli.Say(cmd, "The lab is up, with %d domains and %d resolvers. Try its commands in another terminal; Ctrl-C ends it.", len(l.Domains), len(l.Resolvers))
}
