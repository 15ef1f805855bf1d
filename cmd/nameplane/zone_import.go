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

const zoneImportLong = `Import a zone from a zone file, with all its records, in one step. The zone must not
exist yet; with --replace it may, and the file becomes all of its content: what is not
in the file is deleted. A new zone begins with the serial of the file; one that is
replaced steps its own, if anything in it changes.

The file is read and checked here while it is sent. A mistake is reported with file,
line and column, and nothing is changed. All of the master file syntax of RFC 1035 is
read, with $TTL, $GENERATE, types without a name (RFC 3597), and $INCLUDE of files below
the zone file's own folder. The file begins with a SOA record with a whole name or after
$ORIGIN; where it does neither, --zone names the zone.

An export has each ALIAS in a comment above the addresses that were made of it. They
are imported as plain addresses, or with --revive-alias as the ALIAS.

FILE is - for standard input, from which $INCLUDE is not possible.

While it works, the command shows how far it is: with a bar on a terminal, with a line
every few seconds elsewhere.`

func newZoneImport(conn *connection) *cobra.Command {
	var out cli.Format
	var zone string
	var how importHow
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
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			p := cli.NewProgress(cmd.ErrOrStderr(), quiet)
			defer p.End()
			s, err := readZoneFile(cmd.Context(), args[0], cmd.InOrStdin(), zonefile.Options{Origin: origin, ReviveAlias: how.revive}, p)
			if err != nil {
				return err
			}
			z, err := cl.importZone(cmd.Context(), s, how, p)
			if err != nil {
				return err
			}
			p.End()
			sum := importSummary{Zone: z.raw, Records: s.records, Names: s.names(), Seconds: time.Since(start).Seconds()}
			return out.Say(cmd, sum, "imported %s: %d records, %d names, serial %d, %.1f s\n", z.Name, sum.Records, sum.Names, z.Serial, sum.Seconds)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&zone, "zone", "", "`NAME` of the zone, which relative names are relative to")
	c.Flags().BoolVar(&how.replace, "replace", false, "let the file replace the content of a zone that exists")
	c.Flags().BoolVar(&how.revive, "revive-alias", false, "make ALIAS records of the comments that an export has of them")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "do not show how far the work is")
	return c
}

// importHow is what may become of the records.
type importHow struct {
	replace bool // those that the zone has go
	revive  bool // comments of ALIAS records are such, and their addresses are not in the file
}

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

// importZone sends a zone and waits until it is served.
func (c *client) importZone(ctx context.Context, s *outgoing, how importHow, p *cli.Progress) (zoneReply, error) {
	var z zoneReply
	t, err := c.sendZone(ctx, s, how, p)
	if bad := s.end(); bad != nil {
		return z, bad // it is why sending failed
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

// sendZone sends a zone file as it is being read.
func (c *client) sendZone(ctx context.Context, s *outgoing, how importHow, p *cli.Progress) (t task, err error) {
	if err := c.mayImport(ctx, s.zone, how.replace); err != nil {
		return t, err
	}
	q := url.Values{}
	if how.replace {
		q.Set("replace", "true")
	}
	if how.revive {
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
	req.Header.Set("Content-Type", "text/dns")
	err = p.During(func() error { return c.do(req, &t) })
	return t, err
}

// mayImport asks before a large file is sent for nothing. The server asks again when it commits.
func (c *client) mayImport(ctx context.Context, name dnsname.Name, replace bool) error {
	if replace {
		return nil
	}
	_, found, err := c.lookForZone(ctx, name)
	if err == nil && found {
		err = cli.Fail("--replace lets the file replace what the zone holds", "the zone %s exists already", name)
	}
	return err
}

// await polls a task until it has ended, and forgets it then: nobody will ask for it again.
func (c *client) await(ctx context.Context, t task, path string) (task, error) {
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
	_ = c.call(ctx, http.MethodDelete, path+"/"+t.ID, nil, nil) // a row left behind harms nobody
	if t.Status != "COMPLETE" {
		return t, cli.Fail("nothing was changed", "the server refused it: %s", t.Message)
	}
	return t, nil
}
