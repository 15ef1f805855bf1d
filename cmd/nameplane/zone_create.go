package main

import (
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const zoneCreateLong = `Create a zone. It gets a SOA record, and NS records for the name servers that the
server was configured with, and is served when the command returns.

The email is that of the person responsible; it appears in the SOA record. The TTL
is how long others may keep records that have no TTL of their own.`

func newZoneCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var email, description string
	var ttl uint32
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a zone",
		Long:  zoneCreateLong,
		Example: `  nameplane zone create example.org
  nameplane zone create example.org --email dns-team@example.org --ttl 300`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, err := parseZone(args[0])
			if err != nil {
				return err
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			in := map[string]any{"name": name.String(), "email": email}
			if email == "" {
				in["email"] = "hostmaster@" + strings.TrimSuffix(name.String(), ".")
			}
			if cmd.Flags().Changed("ttl") {
				in["ttl"] = ttl
			}
			if description != "" {
				in["description"] = description
			}
			var z zoneReply
			if err := cl.call(cmd.Context(), http.MethodPost, "/v2/zones", in, &z); err != nil {
				if status(err) == http.StatusConflict {
					return cli.Fail("`nameplane zone show` shows it, unless it is another project's", "the zone %s exists already", name)
				}
				return err
			}
			return out.Say(cmd, z.raw, "created %s with serial %d\n", z.Name, z.Serial)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&email, "email", "", "`ADDRESS` of the person responsible (default hostmaster@NAME)")
	c.Flags().Uint32Var(&ttl, "ttl", 0, "TTL in `SECONDS` of records without their own (default: the server's, 3600)")
	c.Flags().StringVar(&description, "description", "", "a `TEXT` for people")
	return c
}
