package main

import (
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneRollback asks no question, unlike "zone delete": another rollback undoes it.
func newZoneRollback(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "rollback NAME SERIAL",
		Short: "Restore a zone at an earlier serial",
		Long: `Restore the records and the TTL of a zone at an earlier serial, in one atomic step. The
zone gets a new serial, because secondaries accept only a higher one. "nameplane zone
history" shows the serials, and "nameplane zone diff" shows what would change. A rollback
is a change like any other, and can be rolled back.`,
		Example: `  nameplane zone diff example.org 1790000000
  nameplane zone rollback example.org 1790000000`,
		Args: cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			serial, err := parseSerial(cmd, args[1])
			if err != nil {
				return err
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			// The command does not compare first. A second change could come between the comparison and the rollback; only the
			// server can do both in one step.
			var after zoneReply
			path := "/v2/zones/" + z.ID + "/history/rollback"
			if err := cl.call(cmd.Context(), http.MethodPost, path, map[string]uint32{"serial": serial}, &after); err != nil {
				return historyHint(z, err)
			}
			return out.Say(cmd, after.raw, "restored %s at serial %d; the new serial is %d\n", after.Name, serial, after.Serial)
		},
	}
	out.AddFlag(c)
	return c
}

// parseSerial accepts 0, which is a valid serial (RFC 1982 §3), and refuses what does not fit into 32 bits.
func parseSerial(cmd *cobra.Command, s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, cli.Usage(cmd, "%q is not a serial", s)
	}
	return uint32(n), nil
}

// historyHint adds a hint if the server does not know the serial.
func historyHint(z zoneReply, err error) error {
	// The history has an end: old changes are deleted, and very large ones are stored without records.
	if status(err) == http.StatusConflict {
		return cli.Fail("`nameplane zone history "+z.Name+"` shows the serials", "%s", err)
	}
	return err
}
