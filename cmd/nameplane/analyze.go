package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const analyzeLong = `Resolve a name from the root without a cache, and query every server at every level.

The report shows the chain of aliases with the zone, the servers and the TTL of each
name. It shows where answers differ and why. It ends with a plan with dates for changing
the record without an interruption; -o ics prints the plan as a calendar.

Types may stand before or after the name. The default is A and AAAA. The default for a
reverse name (in-addr.arpa, ip6.arpa) is PTR. For a name that begins with an underscore
it is SRV or TLSA if _tcp, _udp, _tls or _sctp follows, and TXT otherwise.` + reportLong

// newAnalyzeCommand takes any number of arguments: the name and its types come in any order, as with dig.
func newAnalyzeCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Analyze}
	c := &cobra.Command{
		Use:   "analyze NAME [TYPE]...",
		Short: "Resolve a name from the root and query every server",
		Long:  analyzeLong,
		Example: `  nameplane analyze www.example.com
  nameplane analyze example.com MX TXT
  nameplane analyze --lab www.bad.com
  nameplane analyze www.example.com -o ics > change.ics
  nameplane analyze www.example.com --expect A=192.0.2.1 --fail-on warning`,
		Args: cli.Args(0, -1),
		RunE: l.run,
	}
	l.addFlags(c)
	l.source.addNameFlags(c)
	return c
}
