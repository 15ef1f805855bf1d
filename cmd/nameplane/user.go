package main

import (
	"bufio"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nameplane/nameplane/internal/cli"
)

const userLong = `A user logs in with a name and a password. OpenStack clients need a user. Each user acts
for one project with one role, as a token does. These commands need a token with the
role admin.`

// newUserCommand is for OpenStack clients, which log in with a name and a password. All other programs use tokens,
// which can expire and need no login.
func newUserCommand() *cobra.Command {
	c := cli.NewGroup("user", "Manage users", userLong,
		`  nameplane user create alice --role member
  nameplane user password alice
  nameplane user list`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newUserCreate(conn), newUserList(conn), newUserPassword(conn), newUserDelete(conn))
	return c
}

const passwordLong = `The password is read from --password-file, from a prompt on a terminal, or from the first
line of standard input. It is never an argument, because other users can read arguments.`

// readPassword reads a password from a file, a terminal or a pipe.
func readPassword(cmd *cobra.Command, file string) (string, error) {
	in := cmd.InOrStdin()
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", cli.Fail("", "cannot read the password: %s", err)
		}
		defer f.Close()
		in = f
	} else if cli.IsTerminal(in) {
		cmd.PrintErr("Password: ")
		// ReadPassword does not print the characters. A password on the screen stays in the scrollback of the terminal.
		b, err := term.ReadPassword(int(in.(*os.File).Fd()))
		cmd.PrintErrln()
		return string(b), err
	}
	// 4096 bytes are more than any password. The limit keeps a wrong file, such as /dev/zero, from filling the memory.
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", cli.Fail("", "cannot read the password: %s", err)
	}
	// Only the end of the line is removed: spaces may belong to a password.
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", cli.Fail("write it to the first line of standard input, or to a file for --password-file",
			"the password is empty")
	}
	return line, nil
}
