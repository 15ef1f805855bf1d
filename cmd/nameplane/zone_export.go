package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newZoneExport has no flag for JSON: people and programs read the same zone file.
func newZoneExport(conn *connection) *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:   "export NAME [FILE]",
		Short: "Export a zone as a zone file",
		Long: `Export a zone as a zone file, to FILE or to standard output. Names are in canonical order
and each record is on one line, so equal zones have equal files. Exports can be compared,
and the export of an imported export is the same file.

FILE is written completely or not at all. An existing file is not overwritten without
--force.`,
		Example: `  nameplane zone export example.org
  nameplane zone export example.org example.org.zone --force
  diff <(nameplane zone export example.org) example.org.zone`,
		Args: cli.Args(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			to := "-"
			if len(args) == 2 {
				to = args[1]
			}
			// Check before the transfer: a zone can have gigabytes.
			if err := checkOverwrite(to, force); err != nil {
				return err
			}
			cl, z, err := conn.openZone(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if to == "-" {
				_, err = cl.exportZone(cmd.Context(), z, cmd.OutOrStdout())
				return err
			}
			size, err := writeFile(to, force, func(w io.Writer) (int64, error) {
				return cl.exportZone(cmd.Context(), z, w)
			})
			if err != nil {
				return err
			}
			// The message goes to standard error, as with an export to standard output, so that scripts can treat
			// both alike.
			_, err = fmt.Fprintf(cmd.ErrOrStderr(), "exported %s with serial %d to %s, %s\n",
				z.Name, z.Serial, to, cli.Megabytes(size))
			return err
		},
	}
	c.Flags().BoolVar(&force, "force", false, "overwrite FILE")
	return c
}

// exportZone streams a zone file to w and returns its size.
func (c *client) exportZone(ctx context.Context, z zoneReply, w io.Writer) (int64, error) {
	// The task has the form that the openstack command uses: create the export, read it, and delete it.
	const exports = "/v2/zones/tasks/exports"
	var t task
	if err := c.call(ctx, http.MethodPost, "/v2/zones/"+z.ID+"/tasks/export", nil, &t); err != nil {
		return 0, err
	}
	defer func() {
		_ = c.call(ctx, http.MethodDelete, exports+"/"+t.ID, nil, nil) // best effort: a task that stays is harmless
	}()
	if t.Status != "COMPLETE" {
		return 0, cli.Fail("", "the server did not export the zone: %s %s", t.Status, t.Message)
	}
	req, err := c.request(ctx, http.MethodGet, exports+"/"+t.ID+"/export", nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/dns")
	return c.download(req, w)
}
