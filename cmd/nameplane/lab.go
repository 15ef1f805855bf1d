package main

import (
	"cmp"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/lab"
)

const labLong = `Run a small internet on this machine, to try scan, analyze and compare.

A lab has root servers, the top-level domains com, net, org and test, correct domains,
and a broken domain for nearly every problem that nameplane can find. It has registries
with RDAP and WHOIS, and caching resolvers that appear at their well-known addresses.

A lab uses loopback addresses and needs no privileges. With --lab, scan, analyze, compare
and watch send packets only to the lab.`

// newLabCommand has no command that stops a lab: the signals that end "lab up" end the lab.
func newLabCommand() *cobra.Command {
	c := cli.NewGroup("lab", "Run a small internet on this machine", labLong,
		`  nameplane lab up
  nameplane lab list
  nameplane scan --lab bad.com
  nameplane lab flip www.example.com A 93.184.10.99`)
	c.AddCommand(newLabUp(), newLabList(), newLabFlip())
	return c
}

// addLabDir adds --dir, the directory of the lab.
func addLabDir(c *cobra.Command, dir *string) {
	c.Flags().StringVar(dir, "dir", labDir, "`DIR` of the lab; the other commands find the lab by it")
}

// printDomains prints a row for each domain in the order of the lab, which begins with the correct domains.
func printDomains(w io.Writer, domains []lab.Domain, dir string) error {
	t := cli.NewTable(w, "DOMAIN", "WHAT IS WRONG", "TRY")
	for _, d := range domains {
		t.Row(d.Name, cmp.Or(d.Wrong, "nothing"), withLabFlag(d.Try, dir))
	}
	return t.Flush()
}

// withLabFlag adds the flag --lab to a command line. It names the directory of the lab if that is not the default.
func withLabFlag(line, dir string) string {
	flag := " --lab"
	if dir != labDir {
		flag += "=" + dir
	}
	// The flag goes behind the name of the command, as in the examples of the help.
	words := strings.SplitN(line, " ", 3)
	if len(words) < 3 {
		return line + flag
	}
	return words[0] + " " + words[1] + flag + " " + words[2]
}
