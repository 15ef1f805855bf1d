package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/mec"
)

const mecApplyLong = `Apply the DNS rules of an application descriptor (ETSI MEC 010-2) to an application
instance. The rules of appDNSRule are created or changed, and all other rules of the
instance are deleted. The change is atomic.

FILE is JSON or YAML; - is standard input. Other parts of the descriptor are ignored. A
descriptor has no states: new rules become ACTIVE, and existing rules keep their state.
With --inactive all rules become INACTIVE.`

// newMecApply reads only the DNS rules of a descriptor. The other parts are for the orchestrator that starts the
// application.
func newMecApply(conn *connection) *cobra.Command {
	var out cli.Format
	var app string
	var inactive bool
	c := &cobra.Command{
		Use:   "apply FILE --app ID",
		Short: "Apply the rules of an application descriptor",
		Long:  mecApplyLong,
		Example: `  nameplane mec apply appd.yaml --app 5abe4782-2c70-4e47-9a4e-0ee3a1a0fd1f
  nameplane mec apply appd.json --app game-1 --inactive`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := requireApp(cmd, app); err != nil {
				return err
			}
			// Read the descriptor before the token: an error in the file needs neither a token nor a server.
			rules, err := readDescriptor(cmd, args[0])
			if err != nil {
				return err
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			if inactive {
				for i := range rules {
					rules[i].State = string(mec.Inactive)
				}
			}
			var reply []json.RawMessage
			// PUT of the whole list is atomic. With one request per rule, a failure could leave a mix of two descriptors.
			if err := cl.call(cmd.Context(), http.MethodPut, rulesPath(app), rules, &reply); err != nil {
				return err
			}
			return printRules(cmd, out, app, reply)
		},
	}
	out.AddFlag(c)
	appFlag(c, &app, true)
	c.Flags().BoolVar(&inactive, "inactive", false, "set all rules to INACTIVE")
	return c
}

// readDescriptor reads the rules of the descriptor in a file, or on standard input if path is "-".
func readDescriptor(cmd *cobra.Command, path string) ([]ruleReply, error) {
	var in io.Reader = cmd.InOrStdin()
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	// Read one byte more than ParseAppD accepts, so that it refuses a larger file instead of parsing a part of it.
	b, err := io.ReadAll(io.LimitReader(in, mec.MaxAppD+1))
	if err != nil {
		return nil, err
	}
	parsed, err := mec.ParseAppD(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	rules := make([]ruleReply, 0, len(parsed))
	for _, r := range parsed {
		// Send the parsed rule instead of the text of the file: a descriptor may hold fields that the API refuses.
		rule := ruleReply{ID: r.ID, Domain: r.Domain, AddrType: r.AddrType(), Addr: r.Addr.String(), TTL: r.TTL,
			State: string(r.State), Balance: r.LoadBalance}
		if !r.Grant.IsZero() {
			rule.Grant = r.Grant.String()
		}
		rules = append(rules, rule)
	}
	return rules, nil
}
