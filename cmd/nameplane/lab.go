package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
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

// printDomains prints a row for each domain: those that are in order first, as the table begins with them.
func printDomains(w io.Writer, domains []lab.Domain, dir string) error {
	t := cli.NewTable(w, "DOMAIN", "WHAT IS WRONG", "TRY")
	for _, d := range domains {
		t.Row(d.Name, cmp.Or(d.Wrong, "nothing"), inLab(d.Try, dir))
	}
	return t.Flush()
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
