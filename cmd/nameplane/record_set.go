package main

import (
	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/rr"
)

const recordSetLong = `Set the records of a name and type. DATA replaces the existing records, if there are
any. The change is atomic, and it is stored on disk and served when the command returns.
Setting the same records again changes nothing.

NAME is relative to the zone, or fully qualified; @ is the zone itself. Each DATA is one
record in zone file syntax, as one argument: '10 mail.example.org.'. Names in DATA are
fully qualified, and their final dot is optional. The quotes around the text of a TXT
record are optional.

An ALIAS stands for the addresses of another name. Unlike a CNAME it may stand at the
apex of a zone. The server looks up the addresses, serves them as A and AAAA records,
and keeps them up to date.

Without --ttl a new set uses the TTL of the zone, and an existing set keeps its TTL.`

// newRecordSet replaces the whole set. To add one record, a client would have to read the set first, and two clients
// could overwrite the records of each other.
func newRecordSet(conn *connection) *cobra.Command {
	var out cli.Format
	var ttl uint32
	var description string
	var managed bool
	c := &cobra.Command{
		Use:   "set ZONE NAME TYPE DATA...",
		Short: "Set the records of a name and type",
		Long:  recordSetLong,
		Example: `  nameplane record set example.org www A 192.0.2.1 192.0.2.2 --ttl 300
  nameplane record set example.org @ MX '10 mail.example.org.' '20 mail.example.net.'
  nameplane record set example.org blog CNAME www.example.org
  nameplane record set example.org @ ALIAS cdn.example.net
  nameplane record set example.org @ TXT 'v=spf1 mx -all'
  nameplane record set example.org '*' AAAA 2001:db8::1
  nameplane record set example.org _sip._tcp SRV '0 5 5060 sip.example.org.'`,
		Args: cli.Args(4, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// Check all arguments before the first request, so that a typing error needs no server.
			t, records, err := recordArgs(args[0], args[2], args[3:])
			if err != nil {
				return err
			}
			cl, z, name, err := conn.openOwner(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			cl.editManaged = managed
			ch := setChange{Action: "upsert", Name: name.String(), Type: t.String(), Records: records}
			// A key that is absent keeps the value of an existing set.
			if cmd.Flags().Changed("ttl") {
				ch.TTL = &ttl
			}
			if cmd.Flags().Changed("description") {
				ch.Description = &description
			}
			return cl.change(cmd, out, z, "set", ch)
		},
	}
	out.AddFlag(c)
	c.Flags().Uint32Var(&ttl, "ttl", 0, "TTL of the set in `SECONDS`")
	addManagedFlag(c, &managed)
	c.Flags().StringVar(&description, "description", "", "`TEXT` that describes the record set")
	return c
}

// recordArgs parses the arguments TYPE DATA...
// It needs no server, and the zone only for the hint about an ambiguous name.
func recordArgs(zoneArg, typeArg string, dataArgs []string) (rr.Type, []string, error) {
	z, err := parseZone(zoneArg)
	if err != nil {
		return 0, nil, err
	}
	t, err := parseType(typeArg)
	if err != nil {
		return 0, nil, err
	}
	records := make([]string, 0, len(dataArgs))
	for _, arg := range dataArgs {
		text, err := parseData(t, arg, z)
		if err != nil {
			return 0, nil, err
		}
		records = append(records, text)
	}
	return t, records, nil
}
