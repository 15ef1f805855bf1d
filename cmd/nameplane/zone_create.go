package main

import (
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const zoneCreateLong = `Create a zone with a SOA record, and with NS records for the name servers in the
configuration of the server. The zone is served when the command returns.

--email is the address of the person responsible for the zone; it appears in the SOA
record. --ttl is the TTL of records that have no TTL of their own.`

// newZoneCreate sends only what the user has set: the server knows the defaults of its installation, such as the name
// servers.
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
			// RFC 2142 §7 names hostmaster as the mailbox for DNS.
			if email == "" {
				in["email"] = "hostmaster@" + strings.TrimSuffix(name.String(), ".")
			}
			// An explicit 0 is sent: it forbids caching (RFC 1035 §3.2.1), and is not the same as no flag.
			if cmd.Flags().Changed("ttl") {
				in["ttl"] = ttl
			}
			if description != "" {
				in["description"] = description
			}
			var z zoneReply
			if err := cl.call(cmd.Context(), http.MethodPost, "/v2/zones", in, &z); err != nil {
				// The server says only that the name is taken. It does not name the owner, because the owner may be
				// another project.
				if status(err) == http.StatusConflict {
					return cli.Fail("`nameplane zone show` shows it, unless another project owns it",
						"the zone %s already exists", name)
				}
				return err
			}
			return out.Say(cmd, z.raw, "created %s with serial %d\n", z.Name, z.Serial)
		},
	}
	out.AddFlag(c)
	c.Flags().StringVar(&email, "email", "", "mail `ADDRESS` of the person responsible (default hostmaster@NAME)")
	c.Flags().Uint32Var(&ttl, "ttl", 0,
		"TTL in `SECONDS` of records without their own TTL (default: set by the server, 3600)")
	c.Flags().StringVar(&description, "description", "", "`TEXT` that describes the zone")
	return c
}
