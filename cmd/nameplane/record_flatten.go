package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const recordFlattenLong = `Look up the target of an ALIAS now instead of at the end of its TTL, and show the result.
The served addresses change only if the addresses of the target have changed.

The server refuses requests that come too often. NAME is relative to the zone, or fully
qualified; @ is the zone itself.

Exit status: 0 the ALIAS is ACTIVE, 1 it is STALE, 2 it has the status ERROR.`

// newRecordFlatten is for the minute after a target has moved. Without it, the server follows the TTL of the target.
func newRecordFlatten(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "flatten ZONE NAME",
		Short: "Look up the target of an ALIAS now",
		Long:  recordFlattenLong,
		Example: `  nameplane record flatten example.org @
  nameplane record flatten example.org www -o json | jq .alias`,
		Args: cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, z, name, err := conn.openOwner(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			// The API addresses a record set by its id.
			sets, err := cl.findSets(cmd.Context(), z, name, "ALIAS")
			if err != nil {
				return err
			}
			if len(sets) == 0 {
				return cli.Fail("`nameplane record list "+z.Name+" --type ALIAS` shows all of them", "%s has no ALIAS", name)
			}
			path := "/v2/zones/" + z.ID + "/recordsets/" + sets[0].ID
			if err := cl.call(cmd.Context(), http.MethodPost, path+"/tasks/flatten", nil, nil); err != nil {
				return err
			}
			// The request only starts the lookup. A target can be slow, and a request must not wait for foreign servers.
			raw, err := cl.awaitAlias(cmd.Context(), path)
			if err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), raw)
			}
			return printAlias(cmd, raw)
		},
	}
	out.AddFlag(c)
	return c
}

// aliasReply is the status of an ALIAS.
type aliasReply struct {
	Cause    string                 `json:"cause"`
	Detail   string                 `json:"detail"`
	Chain    []string               `json:"chain"`
	Families map[string]aliasFamily `json:"families"`
}

// aliasFamily is the result for A or for AAAA. Each is looked up by itself, so one of them can fail alone.
type aliasFamily struct {
	Addresses   []string `json:"addresses"`
	Cause       string   `json:"cause"`
	Detail      string   `json:"detail"`
	NextAttempt string   `json:"next_attempt"`
}

// awaitAlias waits for the requested lookup and returns the record set. The lookup is complete when the status is not
// PENDING and the time of the next attempt has changed. After 0.6 s awaitAlias returns the latest reply anyway.
func (c *client) awaitAlias(ctx context.Context, path string) (raw json.RawMessage, err error) {
	due := ""
	// A lookup takes from one to some hundred milliseconds. Doubling keeps the command fast and the requests few.
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		if err := c.call(ctx, http.MethodGet, path, nil, &raw); err != nil {
			return nil, err
		}
		var s setReply
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		// The status alone is not enough: an ALIAS that was ACTIVE before the request is ACTIVE while the lookup runs.
		next := s.Alias.Families["A"].NextAttempt + s.Alias.Families["AAAA"].NextAttempt
		if due == "" {
			due = next
		}
		if s.Status != "PENDING" && (next != due || next == "") || wait >= 500*time.Millisecond {
			return raw, nil
		}
		if err := c.sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// printAlias prints the status of an ALIAS as text, and returns an error if it is not ACTIVE.
func printAlias(cmd *cobra.Command, raw json.RawMessage) error {
	var s setReply
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("%s ALIAS %s %s", s.Name, strings.Join(s.Records, " "), s.Status)}
	// A map has no order. A before AAAA is the order of the help text.
	for _, typ := range []string{"A", "AAAA"} {
		f := s.Alias.Families[typ]
		if len(f.Addresses) > 0 {
			lines = append(lines, fmt.Sprintf("%-5s%s", typ, strings.Join(f.Addresses, " ")))
		}
		if f.Cause != "" {
			lines = append(lines, fmt.Sprintf("%-5s%s: %s", typ, f.Cause, f.Detail))
		}
	}
	for _, l := range lines {
		if err := cli.Say(cmd, "%s\n", l); err != nil {
			return err
		}
	}
	switch s.Status {
	// STALE is a warning and not a failure: the name still has addresses.
	case "STALE":
		return &cli.Failure{Code: cli.ExitWarning, Hint: s.Alias.Detail,
			Text: "the served addresses are from the last successful lookup"}
	case "ERROR":
		return cli.Fail("", "%s: %s; the chain of names: %s", s.Alias.Cause, s.Alias.Detail,
			strings.Join(s.Alias.Chain, " -> "))
	}
	return nil
}
