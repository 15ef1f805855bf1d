package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

const labFlipLong = `Change the records of a name on all authoritative servers of its zone, to see how caches
follow. The TTL does not change, and the serial increases. Without data the records are
removed.

The resolvers of the lab keep their cached answers until the TTL has expired.`

// newLabFlip accepts no --ttl: the point is to see caches keep the old answer for exactly the TTL that they received.
func newLabFlip() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "flip NAME TYPE [DATA]...",
		Short: "Change a record on the servers of a lab",
		Long:  labFlipLong,
		Example: `  nameplane lab flip www.example.com A 93.184.10.99
  nameplane lab flip www.example.com TXT '"two words"'
  nameplane lab flip www.example.com A`,
		Args: cli.Args(2, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := dnsname.Parse(args[0])
			if err != nil {
				return cli.Usage(cmd, "%q is not a domain name: %s", args[0], err)
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
				// Flip changes all servers of a zone or none, so the message can promise this.
				return fmt.Errorf("nothing was changed: %w", err)
			}
			return cli.Say(cmd, "changed %s %s on %d servers", name, typ, n)
		},
	}
	addLabDir(c, &dir)
	return c
}
