package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const scanLong = `Look at a domain: its registration, its nameservers as the registry, the parent zone and
the zone itself name them, what each of them answers, the SOA record in words, and how
long "does not exist" is remembered, which decides when new records are seen.

The registration comes from the registry by RDAP, or by WHOIS where that fails; persons
are not shown. URLs and mail addresses are taken for the domain in them.` + reportLong

func newScanCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Scan}
	c := &cobra.Command{
		Use:   "scan DOMAIN",
		Short: "Look at a domain: registration, nameservers, SOA",
		Long:  scanLong,
		Example: `  nameplane scan example.com
  nameplane scan --lab bad.com
  nameplane scan example.com -o json --record example.json
  nameplane scan --replay example.json --all`,
		Args: cli.Args(0, 1),
		RunE: l.run,
	}
	l.addFlags(c)
	return c
}
