package main

import (
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const mecLong = `Manage the DNS rules of edge applications (ETSI MEC).

An ACTIVE rule gives a name an address, no matter who owns the zone of the name. An
INACTIVE rule is stored but not served. Each rule belongs to the application instance
that --app names. Several applications may have rules for the same name if the addresses
are equal, or if all of these rules set loadBalance.

The commands need a token with the role platform or admin. A change is stored on disk
and served when the command returns.`

// newMecCommand has no command for a single new rule: a descriptor has all rules of an application, and apply makes the
// rules of the server equal to it.
func newMecCommand() *cobra.Command {
	c := cli.NewGroup("mec", "Manage the DNS rules of edge applications", mecLong,
		`  nameplane mec apply appd.yaml --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f
  nameplane mec list
  nameplane mec deactivate --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f rule1
  nameplane mec watch`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newMecApply(conn), newMecList(conn), newMecActivate(conn),
		newMecDeactivate(conn), newMecDelete(conn), newMecTerminate(conn), newMecWatch(conn))
	return c
}

// ruleReply is a DNS rule in the format of the API.
type ruleReply struct {
	ID       string  `json:"dnsRuleId"`
	Domain   string  `json:"domainName"`
	AddrType string  `json:"ipAddressType"`
	Addr     string  `json:"ipAddress"`
	TTL      *uint32 `json:"ttl,omitempty"`
	State    string  `json:"state,omitempty"`
	Balance  bool    `json:"loadBalance,omitempty"`
	Expires  string  `json:"expiresAt,omitempty"`
	Silenced string  `json:"silencedBy,omitempty"`
	Grant    string  `json:"grantedDomain,omitempty"`
}

// cells returns the columns of a rule in a table, without the application in the first column.
func (r ruleReply) cells() []string {
	ttl := ""
	if r.TTL != nil {
		ttl = strconv.FormatUint(uint64(*r.TTL), 10)
	}
	state := r.State
	// A silenced rule is ACTIVE but not served, so the state alone would mislead.
	if r.Silenced != "" {
		state += " (silenced by " + r.Silenced + ")"
	}
	return []string{r.ID, state, r.Domain, ttl, r.Addr}
}

// appFlag adds --app. The help text names a default unless the flag is required.
func appFlag(c *cobra.Command, app *string, required bool) {
	text := "`ID` of the application instance"
	if !required {
		text += " (default: all applications)"
	}
	c.Flags().StringVar(app, "app", "", text)
}

// requireApp returns an error if --app is missing. cobra can require a flag too, but its message does not say what the
// flag is for.
func requireApp(c *cobra.Command, app string) error {
	if app == "" {
		return cli.Usage(c, "--app is missing: set it to the id of the application instance")
	}
	return nil
}

// withApp is conn.with for a command that requires --app.
func withApp(conn *connection, app *string,
	run func(*cobra.Command, *client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := requireApp(cmd, *app); err != nil {
			return err
		}
		return conn.with(run)(cmd, args)
	}
}

// appPath escapes the id, so that an argument with a slash stays one part of the path.
func appPath(app string) string { return "/mep/config/" + url.PathEscape(app) }

func rulesPath(app string) string { return appPath(app) + "/dns_rules" }

func rulePath(app, rule string) string { return rulesPath(app) + "/" + url.PathEscape(rule) }

var ruleHead = []string{"APPLICATION", "RULE", "STATE", "NAME", "TTL", "ADDRESS"}

// printRules prints the rules of one application.
func printRules(cmd *cobra.Command, out cli.Format, app string, items []json.RawMessage) error {
	l := cli.NewListing(cmd.OutOrStdout(), out, ruleHead...)
	err := l.Page(items, ruleRows(app))
	return l.End(err, "no rules")
}

// ruleRows returns a function that converts a rule of an application to a table row.
func ruleRows(app string) func(json.RawMessage) ([][]string, error) {
	return func(item json.RawMessage) ([][]string, error) {
		var r ruleReply
		if err := json.Unmarshal(item, &r); err != nil {
			return nil, err
		}
		return [][]string{append([]string{app}, r.cells()...)}, nil
	}
}
