package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const scanLong = `Check a domain. The report shows the registration, the nameservers according to the
registry, the parent zone and the zone itself, and the answers of each nameserver. It
explains the SOA record, and how long resolvers cache "does not exist", which decides
when new records become visible.

The registration comes from the registry by RDAP, or by WHOIS if RDAP fails. The report
does not show persons. In a URL or a mail address, the domain in it is checked.

MX, SPF, DMARC, MTA-STS, TLS report and CAA records are checked by DNS alone: no mail
server is contacted. DKIM keys are checked for the selectors given by --dkim.` + reportLong

// newScanCommand also runs without an argument: with --replay the name comes from the recording. The same holds for
// analyze and compare.
func newScanCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Scan}
	c := &cobra.Command{
		Use:   "scan DOMAIN",
		Short: "Check a domain: registration, nameservers, SOA, mail records",
		Long:  scanLong,
		Example: `  nameplane scan example.com
  nameplane scan --lab bad.com
  nameplane scan example.com --dkim selector1,selector2
  nameplane scan example.com -o json --record example.json
  nameplane scan --replay example.json --all`,
		Args: cli.Args(0, 1),
		RunE: l.run,
	}
	l.addFlags(c)
	c.Flags().StringSliceVar(&l.source.dkim, "dkim", nil, "also check the DKIM keys of these `SELECTORS`")
	return c
}
