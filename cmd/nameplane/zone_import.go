package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
	"github.com/nameplane/nameplane/internal/zonefile"
)

const zoneImportLong = `Import a zone from a zone file, in one atomic step. An existing zone is refused, unless
--replace is set: then the file replaces the content of the zone, and records that are
not in the file are deleted. A new zone starts with the serial of the file. A replaced
zone increases its own serial if any record changes.

The command checks the file while it sends it. An error in the file is reported with
file, line and column, and nothing is changed. The syntax is the master file format of
RFC 1035 with $TTL, $GENERATE, unknown types (RFC 3597), and $INCLUDE of files in the
directory of the zone file or below. The first record must be the SOA record, with a
fully qualified name or after $ORIGIN. Otherwise set the name of the zone with --zone.

An export has each ALIAS in a comment above its addresses. The import creates these
addresses as ordinary records, or the ALIAS with --revive-alias.

FILE - is standard input; $INCLUDE is not possible there.

The command shows its progress: a bar on a terminal, otherwise a line every few seconds.`

// newZoneImport reads and sends the file at the same time, so that a zone of a million names need not fit into memory.
func newZoneImport(conn *connection) *cobra.Command {
	var out cli.Format
	var zone string
	var opts importOptions
	var quiet bool
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a zone file",
		Long:  zoneImportLong,
		Example: `  nameplane zone import example.org.zone
  nameplane zone import db.example --zone example.org --replace
  dig @192.0.2.53 example.org AXFR | nameplane zone import -`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			start := time.Now()
			var origin dnsname.Name
			if zone != "" {
				var err error
				if origin, err = parseZone(zone); err != nil {
					return err
				}
			}
			// Open the connection before the file: a missing token must not be found after minutes of reading.
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			p := cli.NewProgress(cmd.ErrOrStderr(), quiet)
			defer p.End()
			syntax := zonefile.Options{Origin: origin, ReviveAlias: opts.reviveAlias}
			s, err := readZoneFile(cmd.Context(), args[0], cmd.InOrStdin(), syntax, p)
			if err != nil {
				return err
			}
			z, err := cl.importZone(cmd.Context(), s, opts, p)
			if err != nil {
				return err
			}
			p.End()
			sum := importSummary{Zone: z.raw, Records: s.records, Names: s.names(), Seconds: time.Since(start).Seconds()}
			return out.Say(cmd, sum, "imported %s: %d records, %d names, serial %d, %.1f s\n",
				z.Name, sum.Records, sum.Names, z.Serial, sum.Seconds)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&zone, "zone", "", "`NAME` of the zone; relative names in the file are relative to it")
	c.Flags().BoolVar(&opts.replace, "replace", false, "replace the content of an existing zone")
	c.Flags().BoolVar(&opts.reviveAlias, "revive-alias", false, "create ALIAS records from the comments of an export")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show the progress")
	return c
}

// importOptions are the flags of an import.
type importOptions struct {
	replace     bool // replace the records of an existing zone
	reviveAlias bool // read ALIAS records from comments, and ignore the addresses below them
}

// importSummary is the output with -o json. The zone is the reply of the API as received.
type importSummary struct {
	Zone    json.RawMessage `json:"zone"`
	Records int             `json:"records"`
	Names   int             `json:"names"`
	Seconds float64         `json:"seconds"`
}

// task is an import or export on the server.
type task struct {
	ID      string `json:"id"`
	Status  string `json:"status"`
	Message string `json:"message"`
	ZoneID  string `json:"zone_id"`
}

const importsPath = "/v2/zones/tasks/imports"

// importZone sends a zone file and waits until the zone is served.
func (c *client) importZone(ctx context.Context, s *zoneUpload, opts importOptions,
	p *cli.Progress) (zoneReply, error) {
	var z zoneReply
	t, err := c.sendZone(ctx, s, opts, p)
	// end must run in every case: it stops the goroutine that reads the file.
	if fileErr := s.end(); fileErr != nil {
		return z, fileErr // the error in the file caused the error of the request
	}
	if err != nil {
		return z, err
	}
	p.Begin("committing", 0)
	if err := p.During(func() error { t, err = c.await(ctx, t, importsPath); return err }); err != nil {
		return z, err
	}
	return z, c.call(ctx, http.MethodGet, "/v2/zones/"+t.ZoneID, nil, &z)
}

// sendZone sends a zone file while the file is read, and returns the task of the import.
func (c *client) sendZone(ctx context.Context, s *zoneUpload, opts importOptions, p *cli.Progress) (t task, err error) {
	if err := c.checkZoneAbsent(ctx, s.zone, opts.replace); err != nil {
		return t, err
	}
	q := url.Values{}
	if opts.replace {
		q.Set("replace", "true")
	}
	if opts.reviveAlias {
		q.Set("revive_alias", "true")
	}
	path := importsPath
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	req, err := c.request(ctx, http.MethodPost, path, s.body)
	if err != nil {
		return t, err
	}
	// text/dns is the registered type of zone files (RFC 4027), and the one that Designate expects.
	req.Header.Set("Content-Type", "text/dns")
	err = p.During(func() error { return c.do(req, &t) })
	return t, err
}

// checkZoneAbsent returns an error if the zone exists and replace is false, before a large file is sent in vain. The
// server checks again when it commits.
func (c *client) checkZoneAbsent(ctx context.Context, name dnsname.Name, replace bool) error {
	if replace {
		return nil
	}
	_, found, err := c.queryZone(ctx, name)
	if err == nil && found {
		err = cli.Fail("use --replace to replace the content of the zone", "the zone %s already exists", name)
	}
	return err
}

// await polls a task until it ends, and then deletes it from the server.
func (c *client) await(ctx context.Context, t task, path string) (task, error) {
	// A small zone commits within milliseconds, and a large one takes seconds. Doubling suits both.
	wait := 5 * time.Millisecond
	for t.Status == "PENDING" {
		if err := c.sleep(ctx, wait); err != nil {
			return t, err
		}
		wait = min(2*wait, 200*time.Millisecond)
		if err := c.call(ctx, http.MethodGet, path+"/"+t.ID, nil, &t); err != nil {
			return t, err
		}
	}
	_ = c.call(ctx, http.MethodDelete, path+"/"+t.ID, nil, nil) // best effort: a task that stays is harmless
	if t.Status != "COMPLETE" {
		return t, cli.Fail("nothing was changed", "the server refused the zone: %s", t.Message)
	}
	return t, nil
}
