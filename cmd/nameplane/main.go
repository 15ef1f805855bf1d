// Command nameplane serves DNS zones, and manages them on a running server.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRootCommand(), os.Args[1:]))
}

const rootLong = `nameplane is a control plane for DNS names: an authoritative DNS server with a
REST API, the command line to manage it, and tools that say why a domain does not work.

scan, analyze, compare, watch, resolvers, checks and lab need no server. Start one with
"nameplane serve"; the other commands talk to it over HTTP, and find it and the token to
show it like this:

  server  --server URL, or NAMEPLANE_SERVER, or http://127.0.0.1:8053
  token   --token-file FILE, or NAMEPLANE_TOKEN, or the file admin.token in the
          server's data folder: --data DIR, or NAMEPLANE_DATA, or ./data

Names may be given with or without their final dot. With -o json the commands
print what the API returned, for programs.

Exit status:

  0  done
  1  done, with a warning
  2  failed: something was wrong, and nothing was changed; or a domain does not work
  3  could not tell: the server was not reached, or did not answer in time
  4  the command was not understood`

func newRootCommand() *cobra.Command {
	root := cli.NewRoot("nameplane", "Serve DNS zones, manage them, and explain domains", rootLong,
		`  nameplane serve --data ./data --dns 127.0.0.1:5300 --http 127.0.0.1:8053
  nameplane zone create example.org
  nameplane record set example.org www A 192.0.2.1
  dig @127.0.0.1 -p 5300 www.example.org
  nameplane analyze www.example.com`)
	root.AddCommand(newServeCommand(), newZoneCommand(), newRecordCommand(), newMecCommand(), newTokenCommand(),
		newUserCommand(), newProjectCommand(), newBackupCommand(), newScrubCommand(), newHealthCommand(), newScanCommand(),
		newAnalyzeCommand(), newCompareCommand(), newWatchCommand(), newChecksCommand(), newResolversCommand(), newLabCommand(), newVersionCommand())
	return root
}
