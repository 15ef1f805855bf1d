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
	ID      string     `json:"id"`
	Name    string     `json:"name"`
	Type    string     `json:"type"`
	TTL     *uint32    `json:"ttl"`
	Records []string   `json:"records"`
	Status  string     `json:"status"`
	Alias   aliasReply `json:"alias"`
}

// findSets returns the record sets of a name; typ may be empty.
func (c *client) findSets(ctx context.Context, z zoneReply, name dnsname.Name, typ string) (sets []setReply, err error) {
	q := url.Values{"name": {name.String()}, "limit": {"1000"}}
	if typ != "" {
		q.Set("type", typ)
	}
	err = c.pages(ctx, "/v2/zones/"+z.ID+"/recordsets?"+q.Encode(), "recordsets", func(items []json.RawMessage) error {
		for _, item := range items {
			var s setReply
			if err := json.Unmarshal(item, &s); err != nil {
				return err
			}
			if s.Name == name.String() { // the filter may be a pattern: *.example.org.
				sets = append(sets, s)
			}
		}
		return nil
	})
	return sets, err
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

// change makes all changes to a zone, or none, and prints them. verb is what became of the record sets.
func (c *client) change(cmd *cobra.Command, out cli.Format, z zoneReply, verb string, changes ...setChange) error {
	var reply json.RawMessage
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
	cl, z, err := c.openZone(ctx, zoneArg)
	return cl, z, name, err
}
