package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const tokenCreateLong = `Create a token and print it. The token is shown only once: the server stores only a hash.

The name appears in the history of zones. --expires sets how long the token is valid, in
days, hours or minutes (90d, 12h, 30m), or the date or time at which it expires.

With --app the token belongs to an edge application instance. It works only on the
address for applications (serve --apps), where it reads the rules of that instance and
changes their state. A token with the role platform manages the rules of all instances;
it is for a MEP or MEPM. A token with the role metrics reads only /metrics; it is for
Prometheus.`

// newTokenCreate creates a member by default, for a program that changes records. The rights of an admin must be asked
// for.
func newTokenCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var project, role, app, expires string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a token",
		Long:  tokenCreateLong,
		Example: `  nameplane token create ci-deploy --expires 90d
  nameplane token create dashboards --project web --role reader
  nameplane token create camera --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f
  nameplane token create mepm --role platform
  (umask 077; nameplane token create prometheus --role metrics > prometheus.token)
  (umask 077; nameplane token create laptop --role admin > ~/.nameplane-token)`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// An explicit role is sent as it is: the server refuses roles that an application cannot have.
			if app != "" && !cmd.Flags().Changed("role") {
				role = roleApp
			}
			in := map[string]any{"name": args[0], "role": role}
			// An empty value is not sent: the server then uses its default.
			for key, value := range map[string]string{"app": app, "project": project} {
				if value != "" {
					in[key] = value
				}
			}
			if expires != "" {
				// The client computes the time, so that 90d counts from the clock of the user who typed it.
				at, err := parseExpiry(expires, time.Now())
				if err != nil {
					return cli.Usage(cmd, "--expires %s: %s", expires, err)
				}
				in["expires_at"] = at
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			return createToken(cmd, cl, out, in)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&project, "project", "", "`PROJECT` that the token acts for (default: that of the token in use)")
	c.Flags().StringVar(&role, "role", "member", "`ROLE`: reader, member, admin, platform, or metrics")
	c.Flags().StringVar(&app, "app", "", "`ID` of the application instance that the token belongs to")
	c.Flags().StringVar(&expires, "expires", "", "`WHEN` the token expires: 90d, 12h, 2027-01-31 (default: never)")
	return c
}

// createToken creates a token and prints it on standard output.
func createToken(cmd *cobra.Command, cl *client, out cli.Format, in map[string]any) error {
	t, raw, err := cl.createAccount(cmd.Context(), "tokens", in)
	if err != nil {
		return err
	}
	if out.JSON() {
		return cli.PrintJSON(cmd.OutOrStdout(), raw)
	}
	// The message goes to standard error, so that $(nameplane token create ...) is only the token.
	cmd.PrintErrf("token %s (%s) is %s; it is shown only once:\n", t.Name, t.ID, t.purpose())
	_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Token)
	return err
}

// roleApp is the default role of a token with --app.
const roleApp = "app"

// purpose describes the role of a token and its expiry.
func (t account) purpose() string {
	ends := "does not expire"
	if t.ExpiresAt != "" {
		ends = "expires " + t.ExpiresAt
	}
	switch {
	// An application token has no project, so the sentence about projects would be wrong.
	case t.App != "":
		return fmt.Sprintf("for application instance %s and %s", t.App, ends)
	case t.Role == "platform":
		return fmt.Sprintf("for a platform and %s", ends)
	case t.Role == "metrics":
		return fmt.Sprintf("for reading metrics and %s", ends)
	}
	return fmt.Sprintf("a %s of project %s and %s", t.Role, t.ProjectName, ends)
}

// parseExpiry parses a duration from now, a date, or a time.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, int(n)).UTC().Truncate(time.Second), nil
		}
	}
	// time.ParseDuration has no days, because a day is not always 24 hours. AddDate above counts calendar days.
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("not a duration, date or time; write 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z")
}
