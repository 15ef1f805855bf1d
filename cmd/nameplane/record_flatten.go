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

const recordFlattenLong = `Look the target of an ALIAS up now, instead of when its TTL is over, and show what
became of it. The addresses that are served change only if the target's have.

Somebody who asks too often is told to wait. NAME is relative to the zone, or whole;
@ is the zone itself. The exit code is 0 when the ALIAS is ACTIVE, 1 when it is STALE,
and 2 when it has the status ERROR.`

func newRecordFlatten(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "flatten ZONE NAME",
		Short: "Look the target of an ALIAS up now",
		Long:  recordFlattenLong,
		Example: `  nameplane record flatten example.org @
  nameplane record flatten example.org www -o json | jq .alias`,
		Args: cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			cl, z, name, err := conn.openOwner(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			sets, err := cl.findSets(cmd.Context(), z, name, "ALIAS")
			if err != nil {
				return err
			}
			if len(sets) == 0 {
				return cli.Fail("`nameplane record list "+z.Name+" --type ALIAS` shows what there is", "%s has no ALIAS", name)
			}
			path := "/v2/zones/" + z.ID + "/recordsets/" + sets[0].ID
			if err := cl.call(cmd.Context(), http.MethodPost, path+"/tasks/flatten", nil, nil); err != nil {
				return err
			}
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

type aliasFamily struct {
	Addresses   []string `json:"addresses"`
	Cause       string   `json:"cause"`
	Detail      string   `json:"detail"`
	NextAttempt string   `json:"next_attempt"`
}

// awaitAlias waits a while for a lookup that was asked for: until the ALIAS is not PENDING, and its next attempt is not
// the one that was due.
func (c *client) awaitAlias(ctx context.Context, path string) (raw json.RawMessage, err error) {
	due := ""
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, 500*time.Millisecond) {
		if err := c.call(ctx, http.MethodGet, path, nil, &raw); err != nil {
			return nil, err
		}
		var s setReply
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
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

// printAlias prints the status of an ALIAS for people.
func printAlias(cmd *cobra.Command, raw json.RawMessage) error {
	var s setReply
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("%s ALIAS %s %s", s.Name, strings.Join(s.Records, " "), s.Status)}
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
	case "STALE":
		return &cli.Failure{Code: cli.ExitWarning, Text: "the addresses are those of the last lookup that succeeded", Hint: s.Alias.Detail}
	case "ERROR":
		return cli.Fail("", "%s: %s; the names on the way: %s", s.Alias.Cause, s.Alias.Detail, strings.Join(s.Alias.Chain, " -> "))
	}
	return nil
}
