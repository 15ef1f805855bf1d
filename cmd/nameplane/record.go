package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/dnsname"
)

const recordLong = `A record set is all records with one name and type. They have one TTL and are changed
together. A change is stored on disk and served when the command returns.`

// newRecordCommand has neither create nor update: set does both, so that a script need not know what exists.
func newRecordCommand() *cobra.Command {
	c := cli.NewGroup("record", "Manage the records of a zone", recordLong,
		`  nameplane record set example.org www A 192.0.2.1 192.0.2.2 --ttl 300
  nameplane record list example.org
  nameplane record delete example.org www`)
	conn := &connection{}
	conn.addFlags(c)
	conn.addProjectFlag(c)
	c.AddCommand(newRecordList(conn), newRecordSet(conn), newRecordDelete(conn), newRecordFlatten(conn))
	return c
}

// setReply holds the fields of a record set that the command line uses.
type setReply struct {
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Type    string     `json:"type"`
	TTL     *uint32    `json:"ttl"`
	Records []string   `json:"records"`
	Status  string     `json:"status"`
	Alias   aliasReply `json:"alias"`
}

// findSets returns the record sets of a name: all of them, or the one with type typ if that is not empty.
func (c *client) findSets(ctx context.Context, z zoneReply, name dnsname.Name, typ string) ([]setReply, error) {
	var sets []setReply
	// 1000 is the largest page that the API returns.
	q := url.Values{"name": {name.String()}, "limit": {"1000"}}
	if typ != "" {
		q.Set("type", typ)
	}
	err := c.pages(ctx, "/v2/zones/"+z.ID+"/recordsets?"+q.Encode(), "recordsets", func(items []json.RawMessage) error {
		for _, item := range items {
			var s setReply
			if err := json.Unmarshal(item, &s); err != nil {
				return err
			}
			if s.Name == name.String() { // the API takes *.example.org. for a pattern
				sets = append(sets, s)
			}
		}
		return nil
	})
	return sets, err
}

// setChange is one change of an atomic batch.
type setChange struct {
	Action      string   `json:"action"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	TTL         *uint32  `json:"ttl,omitempty"`
	Records     []string `json:"records,omitempty"`
	Description *string  `json:"description,omitempty"`
}

// change applies all changes to a zone, or none, and prints the record sets. verb says what was done to them.
func (c *client) change(cmd *cobra.Command, out cli.Format, z zoneReply, verb string, changes ...setChange) error {
	var reply json.RawMessage
	// A batch is atomic even with one change, and its reply has the serial of the zone. A plain PUT of a record set does
	// not.
	in := map[string]any{"changes": changes}
	if err := c.call(cmd.Context(), http.MethodPost, "/v2/zones/"+z.ID+"/changes", in, &reply); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if out.JSON() {
		return cli.PrintJSON(w, reply)
	}
	var body struct {
		Zone       zoneReply  `json:"zone"`
		RecordSets []setReply `json:"recordsets"`
	}
	if err := json.Unmarshal(reply, &body); err != nil {
		return err
	}
	for _, s := range body.RecordSets {
		if _, err := fmt.Fprintf(w, "%s %s %s\n", verb, s.Name, s.Type); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s has serial %d\n", body.Zone.Name, body.Zone.Serial)
	return err
}

// openOwner is openZone for commands that also have the owner name of a record. It refuses a name outside of the zone
// before it sends a request.
func (c *connection) openOwner(ctx context.Context, zoneArg, nameArg string) (*client, zoneReply, dnsname.Name, error) {
	// Both names are checked before a connection is opened, so that a typing error needs no server.
	zoneName, err := parseZone(zoneArg)
	if err != nil {
		return nil, zoneReply{}, zoneName, err
	}
	name, err := parseOwner(nameArg, zoneName)
	if err != nil {
		return nil, zoneReply{}, name, err
	}
	cl, z, err := c.openZone(ctx, zoneArg)
	return cl, z, name, err
}
