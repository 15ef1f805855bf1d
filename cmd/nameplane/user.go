package main

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/nameplane/nameplane/internal/cli"
)

func newUserCommand() *cobra.Command {
	c := cli.NewGroup("user", "Manage users", `Users are for people, and for OpenStack clients that log in with a name and a
password. Each acts for one project with one role, as tokens do. These commands need a
token with the role admin.`,
		`  nameplane user create alice --role member
  nameplane user password alice
  nameplane user list`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newUserCreate(conn), newUserList(conn), newUserPassword(conn), newUserDelete(conn))
	return c
}

const passwordLong = `The password is read from --password-file, or asked for on a terminal, or is the first
line of standard input. It is never an argument, because others can read those.`

func newUserCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var project, role, file string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a user",
		Long:  "Create a user.\n\n" + passwordLong,
		Example: `  nameplane user create alice
  nameplane user create alice --project web --role reader --password-file alice.pw`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, file)
			if err != nil {
				return err
			}
			in := map[string]any{"name": args[0], "role": role, "password": password}
			if project != "" {
				in["project"] = project
			}
			u, raw, err := cl.createAccount(cmd.Context(), "users", in)
			if err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), raw)
			}
			return cli.Say(cmd, "created user %s (%s), a %s of project %s\n", u.Name, u.ID, u.Role, u.ProjectName)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&project, "project", "", "`PROJECT` of the user (default: that of the token in use)")
	c.Flags().StringVar(&role, "role", "member", "`ROLE`: reader, member or admin")
	c.Flags().StringVar(&file, "password-file", "", "`FILE` whose first line is the password")
	return c
}

func newUserPassword(conn *connection) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "password NAME",
		Short: "Set the password of a user",
		Long:  "Set the password of a user, and end all sessions of the old one.\n\n" + passwordLong,
		Example: `  nameplane user password alice
  nameplane user password alice --password-file alice.pw`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			u, err := cl.findAccount(cmd.Context(), "users", args[0])
			if err != nil {
				return err
			}
			password, err := readPassword(cmd, file)
			if err != nil {
				return err
			}
			in := map[string]string{"password": password}
			if err := cl.call(cmd.Context(), http.MethodPatch, "/access/v1/users/"+url.PathEscape(u.ID), in, nil); err != nil {
				return err
			}
			return cli.Say(cmd, "user %s has a new password\n", u.Name)
		},
	}
	c.Flags().StringVar(&file, "password-file", "", "`FILE` whose first line is the password")
	return c
}

func newUserList(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:     "list",
		Short:   "List users",
		Long:    `List all users by name, with their project and role.`,
		Example: `  nameplane user list`,
		Args:    cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			head := []string{"ID", "NAME", "PROJECT", "ROLE", "CREATED"}
			return listAccounts(cmd, conn, out, "users", head, func(a account) []string {
				return []string{a.ID, a.Name, a.ProjectName, a.Role, a.CreatedAt}
			})
		},
	}
	out.AddFlag(c)
	return c
}

func newUserDelete(conn *connection) *cobra.Command {
	return newDeleteCommand(conn, &cobra.Command{
		Use:     "delete NAME",
		Short:   "Delete a user",
		Long:    `Delete a user, given by name or id, and end all its sessions.`,
		Example: `  nameplane user delete alice`,
	}, "users", "deleted")
}

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
		b, err := term.ReadPassword(int(in.(*os.File).Fd()))
		cmd.PrintErrln()
		return string(b), err
	}
	line, err := bufio.NewReader(io.LimitReader(in, 4096)).ReadString('\n')
	if err != nil && err != io.EOF {
		return "", cli.Fail("", "cannot read the password: %s", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", cli.Fail("put it on the first line of standard input, or into a file for --password-file", "the password is empty")
	}
	return line, nil
}
