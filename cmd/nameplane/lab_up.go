package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
)

const labUpLong = `Start a lab and print its domains. The lab runs until it is interrupted.

All DNS servers of the lab use one port. Each has its own address, from 127.53.0.1 on, so
that dig can query them. The file lab.json in the directory of the lab maps the simulated
addresses to loopback addresses. The file ca.pem is the certificate of the lab's CA.`

// newLabUp runs in the foreground, so that the lab ends with its terminal and no server stays behind.
func newLabUp() *cobra.Command {
	var dir string
	var port uint16
	c := &cobra.Command{
		Use:   "up [--dir DIR]",
		Short: "Start a lab",
		Long:  labUpLong,
		Example: `  nameplane lab up
  nameplane lab up --dir /tmp/lab --port 0`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			// A context of its own, so that the lab can be stopped without a signal.
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			l, err := startLab(ctx, lab.Options{Dir: dir, Port: port})
			if err != nil {
				return err
			}
			// The lab is up before its domains are printed, so a script can wait for the first line.
			if err := announceLab(cmd, l, dir); err != nil {
				// Standard output may be closed. A lab whose addresses nobody can see must not stay.
				cancel()
				return errors.Join(err, l.Wait())
			}
			return l.Wait()
		},
	}
	addLabDir(c, &dir)
	c.Flags().Uint16Var(&port, "port", labPort, "`PORT` of the DNS servers; 0: any free port")
	return c
}

// labPort is the default port. It is free on most machines, and ports above 1023 need no privileges.
const labPort = 5310

// startLab starts a lab and adds hints to the errors that users can fix.
func startLab(ctx context.Context, o lab.Options) (*lab.Lab, error) {
	l, err := lab.Start(ctx, o)
	switch {
	case errors.Is(err, lab.ErrRunning):
		return nil, cli.Fail("use that lab, or set another directory with --dir", "a lab is already running in %s", o.Dir)
	// Nearly every other error is a port that another program uses.
	case err != nil:
		return nil, &cli.Failure{Code: cli.ExitError, Text: err.Error(), Hint: "--port 0 uses free ports", Err: err}
	}
	return l, nil
}

// announceLab prints the domains of a lab and how to use it.
func announceLab(cmd *cobra.Command, l *lab.Lab, dir string) error {
	if err := printDomains(cmd.OutOrStdout(), l.Domains, dir); err != nil {
		return err
	}
	return cli.Say(cmd, "The lab is up, with %d domains and %d resolvers. "+
		"Try the commands in another terminal. Stop the lab with Ctrl-C.", len(l.Domains), len(l.Resolvers))
}
