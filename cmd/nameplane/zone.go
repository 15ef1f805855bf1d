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

const zoneLong = `The server answers queries for its zones. Each zone has a name, a serial that increases
with every change, and records. "nameplane record" manages the records.`

// newZoneCommand has the flag --project, with which an admin acts for another project than that of the token.
func newZoneCommand() *cobra.Command {
	c := cli.NewGroup("zone", "Manage zones", zoneLong,
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

// zoneReply holds the fields of a zone that the command line uses.
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

	raw json.RawMessage // the reply as received, for -o json
}

// UnmarshalJSON decodes the fields and keeps a copy of the JSON text in raw.
func (z *zoneReply) UnmarshalJSON(b []byte) error {
	type plain zoneReply
	if err := json.Unmarshal(b, (*plain)(z)); err != nil {
		return err
	}
	// Copy: the decoder reuses its buffer after UnmarshalJSON returns.
	z.raw = append(json.RawMessage(nil), b...)
	return nil
}

// findZone returns the zone with a name. It returns an error if there is none.
func (c *client) findZone(ctx context.Context, name dnsname.Name) (zoneReply, error) {
	z, found, err := c.queryZone(ctx, name)
	if err == nil && !found {
		err = cli.Fail("`nameplane zone list` shows the zones; administrators use --project for the zones of other projects",
			"there is no zone %s on %s", name, c.base)
	}
	return z, err
}

// queryZone returns the zone with a name, and whether it exists.
func (c *client) queryZone(ctx context.Context, name dnsname.Name) (z zoneReply, found bool, err error) {
	var body struct{ Zones []zoneReply }
	if err := c.call(ctx, http.MethodGet, "/v2/zones?name="+url.QueryEscape(name.String()), nil, &body); err != nil {
		return z, false, err
	}
	for _, z := range body.Zones { // the API takes * for a pattern, so it may return other zones
		if z.Name == name.String() {
			return z, true, nil
		}
	}
	return z, false, nil
}

// openZone returns a client and the zone that arg names. Most commands for zones and records begin with it.
func (c *connection) openZone(ctx context.Context, arg string) (cl *client, z zoneReply, err error) {
	name, err := parseZone(arg)
	if err != nil {
		return nil, z, err
	}
	// The name is parsed first: a typing error needs neither token nor server.
	if cl, err = c.open(ctx); err == nil {
		z, err = cl.findZone(ctx, name)
	}
	return cl, z, err
}
