package main

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

func newRecordCommand() *cobra.Command {
	c := cli.NewGroup("record", "Manage the records of a zone", `Records come in sets: all records of one name and type, which share a TTL and are
changed together. A change is on disk and served when the command returns.`,
		`  nameplane record set example.org www A 192.0.2.1 192.0.2.2 --ttl 300
  nameplane record list example.org
  nameplane record delete example.org www`)
	conn := &connection{}
	conn.addFlags(c)
	conn.addProjectFlag(c)
	c.AddCommand(newRecordList(conn), newRecordSet(conn), newRecordDelete(conn), newRecordFlatten(conn))
	return c
}

// setReply is as much of a record set as the command line speaks of.
type setReply struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	TTL     *uint32  `json:"ttl"`
	Records []string `json:"records"`
}

// setChange is one step of an atomic batch.
type setChange struct {
	Action      string   `json:"action"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	TTL         *uint32  `json:"ttl,omitempty"`
	Records     []string `json:"records,omitempty"`
	Description *string  `json:"description,omitempty"`
}

// change makes all changes to a zone, or none.
func (c *client) change(ctx context.Context, z zoneReply, changes []setChange, out any) error {
	return c.call(ctx, http.MethodPost, "/v2/zones/"+z.ID+"/changes", map[string]any{"changes": changes}, out)
}

// openOwner is openZone for a record of the zone as well. A name that is not in it is refused before anything is asked.
func (c *connection) openOwner(ctx context.Context, zoneArg, nameArg string) (*client, zoneReply, dnsname.Name, error) {
	zoneName, err := parseZone(zoneArg)
	if err != nil {
		return nil, zoneReply{}, zoneName, err
	}
	name, err := parseOwner(nameArg, zoneName)
	if err != nil {
		return nil, zoneReply{}, name, err
	}
	cl, z, _, err := c.openZone(ctx, zoneArg)
	return cl, z, name, err
}
