package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/explain"
)

const analyzeLong = `Resolve a name from the root, without any cache, and ask every server at every level: the
chain of aliases with the zone, the servers and the TTL of each, where answers differ and
what kind of difference that is, and a plan with dates for changing it unnoticed, which
-o ics makes a calendar of.

Types may be given before or behind the name; default: A and AAAA. Names
of addresses (in-addr.arpa, ip6.arpa) are asked for PTR, and those with an underscore
before a label for SRV or TLSA if _tcp, _udp, _tls or _sctp follows, and else for TXT.` + reportLong

func newAnalyzeCommand() *cobra.Command {
	l := &reportCommand{kind: explain.Analyze}
	c := &cobra.Command{
		Use:   "analyze NAME [TYPE]...",
		Short: "Resolve a name from the root and ask every server on the way",
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
