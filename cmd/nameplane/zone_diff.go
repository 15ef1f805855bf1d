package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneDiff prints records in the form of "zone history", so that both can be read alike.
func newZoneDiff(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "diff NAME FROM [TO]",
		Short: "Compare a zone at two serials",
		Long: `Compare a zone at two serials. The command prints the removed (-) and added (+) records,
and the TTL of the zone if it differs. The default for TO is the current serial. Without
differences the command prints nothing.`,
		Example: `  nameplane zone diff example.org 1790000000
  nameplane zone diff example.org 1790000000 1790003600`,
		Args: cli.Args(2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Parse the serials before the first request, so that a typing error needs no server.
			serials := make([]uint32, 0, 2)
			for _, arg := range args[1:] {
				n, err := parseSerial(cmd, arg)
				if err != nil {
					return err
				}
				serials = append(serials, n)
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			serials = append(serials, z.Serial) // the default for TO
			var reply json.RawMessage
			path := fmt.Sprintf("/v2/zones/%s/history/diff?from=%d&to=%d", z.ID, serials[0], serials[1])
			if err := cl.call(cmd.Context(), http.MethodGet, path, nil, &reply); err != nil {
				// The server compares: the history can hold changes of many megabytes, and the client needs only the result.
				return historyHint(z, err)
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), reply)
			}
			var body struct {
				ZoneTTL    historyTTL   `json:"zone_ttl"`
				RecordSets []historySet `json:"recordsets"`
			}
			if err := json.Unmarshal(reply, &body); err != nil {
				return err
			}
			var b strings.Builder
			// The TTL of the zone comes first, because it explains the TTLs of the records below.
			body.ZoneTTL.diff(&b)
			for _, s := range body.RecordSets {
				s.diff(&b, body.ZoneTTL)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), b.String())
			return err
		},
	}
	out.AddFlag(c)
	return c
}
