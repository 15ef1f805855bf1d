package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const tokenCreateLong = `Create a token and print it. It is shown this once: the server keeps only a hash.

The name is for people, and appears in the history of zones. --expires is how long the
token is good, in days, hours or minutes (90d, 12h, 30m), or the day or moment it ends.

With --app the token is that of an edge application instance: on the address that the
server has for applications (serve --apps) it shows and switches the rules of that
instance, and it is good for nothing else. A token with the role platform is for who
manages the rules of all instances, a MEP or MEPM. A token with the role metrics reads
/metrics and nothing else; give it to Prometheus.`

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
			if app != "" && !cmd.Flags().Changed("role") {
				role = roleApp
			}
			in := map[string]any{"name": args[0], "role": role}
			for key, value := range map[string]string{"app": app, "project": project} {
				if value != "" {
					in[key] = value
				}
			}
			if expires != "" {
				at, err := parseMoment(expires, time.Now())
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
	c.Flags().StringVar(&app, "app", "", "`ID` of the application instance that the token is for")
	c.Flags().StringVar(&expires, "expires", "", "`WHEN` the token ends: 90d, 12h, 2027-01-31 (default: never)")
	return c
}

func createToken(cmd *cobra.Command, cl *client, out cli.Format, in map[string]any) error {
	t, raw, err := cl.createAccount(cmd.Context(), "tokens", in)
	if err != nil {
		return err
	}
	if out.JSON() {
		return cli.PrintJSON(cmd.OutOrStdout(), raw)
	}
	// The sentence goes elsewhere than the token, so that $(nameplane token create ...) is the token.
	cmd.PrintErrf("token %s (%s) is %s; it is shown only now:\n", t.Name, t.ID, t.purpose())
	_, err = fmt.Fprintln(cmd.OutOrStdout(), t.Token)
	return err
}

// roleApp is what a token with --app is.
const roleApp = "app"

// purpose says in words what a token is for, and for how long.
func (t account) purpose() string {
	ends := "does not expire"
	if t.ExpiresAt != "" {
		ends = "expires " + t.ExpiresAt
	}
	switch {
	case t.App != "":
		return fmt.Sprintf("that of application instance %s and %s", t.App, ends)
	case t.Role == "platform":
		return fmt.Sprintf("for a platform and %s", ends)
	case t.Role == "metrics":
		return fmt.Sprintf("for reading metrics and %s", ends)
	}
	return fmt.Sprintf("a %s of project %s and %s", t.Role, t.ProjectName, ends)
}

// parseMoment reads how long from now, or when.
func parseMoment(s string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return now.AddDate(0, 0, int(n)).UTC().Truncate(time.Second), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("this is not a time; write 90d, 12h, 2027-01-31 or 2027-01-31T12:00:00Z")
}
