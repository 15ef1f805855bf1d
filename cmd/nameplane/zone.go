package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

func newZoneCommand() *cobra.Command {
	c := cli.NewGroup("zone", "Manage zones", `Zones are what the server answers for. Each has a name, a serial that steps with every
change, and records; see "nameplane record" for those.`,
		`  nameplane zone create example.org
  nameplane zone import example.org.zone
  nameplane zone list`)
	conn := &connection{}
	conn.addFlags(c)
	conn.addProjectFlag(c)
	c.AddCommand(newZoneList(conn), newZoneCreate(conn), newZoneShow(conn), newZoneDelete(conn), newZoneImport(conn),
		newZoneExport(conn), newZoneHistory(conn), newZoneDiff(conn), newZoneRollback(conn))
	return c
}

// zoneReply is as much of a zone as the command line speaks of.
type zoneReply struct {
	ID          string `json:"id"`
	ProjectID   string `json:"project_id"`
	Name        string `json:"name"`
	Email       string `json:"email"`
	TTL         uint32 `json:"ttl"`
	Serial      uint32 `json:"serial"`
	Status      string `json:"status"`
	Type        string `json:"type"`
	Description string `json:"description"`
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`

	raw json.RawMessage // as it came
}

// UnmarshalJSON keeps the text too.
func (z *zoneReply) UnmarshalJSON(b []byte) error {
	type plain zoneReply
	if err := json.Unmarshal(b, (*plain)(z)); err != nil {
		return err
	}
	z.raw = append(json.RawMessage(nil), b...)
	return nil
}

// findZone finds a zone by name, or returns an error that says where to look.
func (c *client) findZone(ctx context.Context, name dnsname.Name) (zoneReply, error) {
	z, found, err := c.lookForZone(ctx, name)
	if err == nil && !found {
		err = cli.Fail("`nameplane zone list` shows the zones; an administrator sees those of others with --project",
			"there is no zone %s on %s", name, c.base)
	}
	return z, err
}

func (c *client) lookForZone(ctx context.Context, name dnsname.Name) (z zoneReply, found bool, err error) {
	var body struct{ Zones []zoneReply }
	if err := c.call(ctx, http.MethodGet, "/v2/zones?name="+url.QueryEscape(name.String()), nil, &body); err != nil {
		return z, false, err
	}
	for _, z := range body.Zones { // a filter may be a pattern, so what it found may be other zones
		if z.Name == name.String() {
			return z, true, nil
		}
	}
	return z, false, nil
}

// openZone is what most verbs begin with: a client, and the zone that the first argument names.
func (c *connection) openZone(ctx context.Context, arg string) (cl *client, z zoneReply, err error) {
	name, err := parseZone(arg)
	if err != nil {
		return nil, z, err
	}
	if cl, err = c.open(ctx); err == nil {
		z, err = cl.findZone(ctx, name)
	}
	return cl, z, err
}
