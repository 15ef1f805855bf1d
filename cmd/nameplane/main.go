// Command nameplane serves DNS zones, manages them on a running server, and explains why a domain does not work.
//
// Start with newRootCommand in main.go: it lists the commands. Each command has a file with its name: the code of
// "nameplane zone import" is in zone_import.go. connect.go finds the server and the token, client.go sends the
// requests, and report.go is the common part of scan, analyze and compare.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

func main() {
	os.Exit(cli.Main(newRootCommand(), os.Args[1:]))
}

const rootLong = `nameplane is a control plane for DNS names: an authoritative DNS server with a REST API,
the command line to manage it, and tools that explain why a domain does not work.

scan, analyze, compare, watch, resolvers, checks and lab need no nameplane server. The
other commands send HTTP requests to a server that was started with "nameplane serve".
They find the address of the server and the token as follows:

  server  --server URL, or NAMEPLANE_SERVER, or http://127.0.0.1:8053
  token   --token-file FILE, or NAMEPLANE_TOKEN, or the file admin.token in the
          server's data directory: --data DIR, or NAMEPLANE_DATA, or ./data

The final dot of a name is optional. With -o json the commands print the reply of the
API, for programs.

Exit status:

  0  success
  1  success with a warning
  2  failure: the request was refused and nothing was changed, or a domain does not work
  3  unknown: the server could not be reached, or did not answer in time
  4  usage error: a wrong command, flag or argument`

// newRootCommand returns a new tree of commands for each call: cobra keeps the values of flags in it, and tests run
// many commands in one process.
func newRootCommand() *cobra.Command {
	root := cli.NewRoot("nameplane", "Serve DNS zones, manage them, and explain domains", rootLong,
		`  nameplane serve --data ./data --dns 127.0.0.1:5300 --http 127.0.0.1:8053
  nameplane zone create example.org
  nameplane record set example.org www A 192.0.2.1
  dig @127.0.0.1 -p 5300 www.example.org
  nameplane analyze www.example.com`)
	// The order is that of the help: server, zones, accounts, operation, and then the commands that need no server.
	root.AddCommand(newServeCommand(), newZoneCommand(), newRecordCommand(), newMecCommand(), newTSIGCommand(),
		newTokenCommand(), newUserCommand(), newProjectCommand(), newBackupCommand(), newScrubCommand(), newHealthCommand(),
		newScanCommand(), newAnalyzeCommand(), newCompareCommand(), newWatchCommand(), newServiceCommand(),
		newChecksCommand(),
		newResolversCommand(), newLabCommand(), newVersionCommand())
	return root
}
