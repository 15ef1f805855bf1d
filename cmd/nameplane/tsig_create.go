package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const tsigCreateLong = `Create a TSIG key with a random secret, and print it as a key clause of BIND's
configuration. nsupdate and dig read that format with -k; NAME, the algorithm and the
secret are what other programs ask for.

The key is for the zones of --zone, or for all zones of the default pool with
--all-zones. A key with --zone is deleted with its last zone.

--name limits the key to names, and --type to types of records. Both can be repeated.
A name is a full name, in which one label can be an asterisk: it stands for one label or
more. A key with --name can change NS and SOA records only if --type lists them.
A key with --name or --type can only update records; it cannot transfer zones.`

// newTSIGCreate prints the key and nothing else to standard output, which can so be redirected into a key file.
func newTSIGCreate(conn *connection) *cobra.Command {
	var out cli.Format
	var zones, names, types []string
	var all bool
	var algorithm string
	c := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a TSIG key",
		Long:  tsigCreateLong,
		Example: `  (umask 077; nameplane tsig create update.example.org --zone example.org > update.key)
  nsupdate -k update.key
  nameplane tsig create acme --zone example.org --name '_acme-challenge.*' --type TXT
  nameplane tsig create dhcp --zone lan.example.org --zone 2.0.192.in-addr.arpa
  nameplane tsig create transfer --all-zones --algorithm hmac-sha512`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			// A key for all zones must be asked for. As a default, one forgotten flag would open every zone of the server.
			if all == (len(zones) > 0) {
				return cli.Usage(cmd, "a key needs either --zone or --all-zones")
			}
			// The client makes the secret, because the API of Designate requires one in the request.
			secret, ok := newSecret(algorithm)
			if !ok {
				return cli.Usage(cmd, "--algorithm %s: not one of hmac-sha256, hmac-sha384 and hmac-sha512", algorithm)
			}
			cl, err := conn.open(cmd.Context())
			if err != nil {
				return err
			}
			// Keys belong to the server and not to a project, so --zone may name a zone of any project.
			cl.allProjects = true
			in := map[string]any{"name": strings.TrimSuffix(args[0], "."), "algorithm": algorithm, "secret": secret}
			if len(names) > 0 {
				in["names"] = names
			}
			if len(types) > 0 {
				in["types"] = types
			}
			if err := cl.setScope(cmd.Context(), in, zones); err != nil {
				return err
			}
			var k tsigKey
			if err := cl.call(cmd.Context(), http.MethodPost, tsigPath, in, &k); err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), k.raw)
			}
			return printKey(cmd.OutOrStdout(), k)
		},
	}
	out.AddFlag(c)
	c.Flags().StringArrayVar(&zones, "zone", nil, "`ZONE` that the key is for; can be repeated")
	c.Flags().BoolVar(&all, "all-zones", false, "the key is for all zones of the default pool, present and future")
	c.Flags().StringArrayVar(&names, "name", nil,
		"`PATTERN` of names that the key may change; can be repeated (default: all)")
	c.Flags().StringArrayVar(&types, "type", nil,
		"`TYPE` of records that the key may change; can be repeated (default: all)")
	c.Flags().StringVar(&algorithm, "algorithm", "hmac-sha256", "`ALGORITHM`: hmac-sha256, hmac-sha384 or hmac-sha512")
	return c
}

// setScope sets the fields of a new key that say which zones it is for. No zones stand for all zones.
func (c *client) setScope(ctx context.Context, in map[string]any, zones []string) error {
	var ids []string
	for _, arg := range zones {
		name, err := parseZone(arg)
		if err != nil {
			return err
		}
		z, err := c.findZone(ctx, name)
		if err != nil {
			return err
		}
		ids = append(ids, z.ID)
	}
	// A key for one zone has the form that Designate has too, so that its own tools can read it.
	if len(ids) == 1 {
		in["scope"], in["resource_id"] = "ZONE", ids[0]
		return nil
	}
	if len(ids) > 1 {
		in["zones"] = ids
	}
	in["scope"], in["resource_id"] = "POOL", defaultPool
	return nil
}

// defaultPool is the id of the default pool, which is the same in every installation of Designate.
const defaultPool = "794ccc2c-d751-44fe-b57f-8894c9f5c842"
