package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newHealthCommand is for container images that have neither a shell nor curl.
func newHealthCommand() *cobra.Command {
	conn := &connection{}
	c := &cobra.Command{
		Use:   "health",
		Short: "Report whether a server is ready",
		Long: `Report whether a server answers queries and accepts changes. The command needs no token,
so it can be the health check of a container.

Exit status: 0 the server is ready, 2 it answers queries but refuses changes and the
message says why, 3 it cannot be reached.`,
		Example: `  nameplane health
  nameplane health --server http://127.0.0.1:8053`,
		Args: cli.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := conn.dial() // not open, which reads a token
			if err != nil {
				return err
			}
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, cl.base+"/readyz", nil)
			if err != nil {
				return err
			}
			res, err := cl.http.Do(req)
			if err != nil {
				return cl.unreachable(err)
			}
			defer res.Body.Close()
			// The text goes into a container's health log, which keeps 4096 bytes.
			text, err := io.ReadAll(io.LimitReader(res.Body, 4096))
			if err != nil {
				return cl.unreachable(err)
			}
			if res.StatusCode != http.StatusOK {
				// Status 2 and not 3: the server has answered, and queries work. A restart would interrupt them and
				// repair nothing.
				return &cli.Failure{Code: cli.ExitError, Text: fmt.Sprintf("%s: %s", cl.base, strings.TrimSpace(string(text)))}
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(string(text)))
			return err
		},
	}
	// Not addFlags: a flag for a token would suggest that the check needs a secret in the container.
	conn.addServerFlags(c)
	return c
}
