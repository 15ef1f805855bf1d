package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// newTSIGRotate changes only the secret. The id, the zones and the limits stay, so clients need nothing else.
func newTSIGRotate(conn *connection) *cobra.Command {
	var out cli.Format
	c := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Give a TSIG key a new secret",
		Long: `Give a TSIG key a new random secret, and print the key as "nameplane tsig create" does.
The server refuses the old secret from then on. A client that must not lose an update
needs a second key: create it, configure the client, and delete the first key.`,
		Example: `  (umask 077; nameplane tsig rotate update.example.org > update.key)`,
		Args:    cli.Args(1, 1),
		RunE: conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
			k, err := cl.findKey(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			// The algorithm stays: peers configure it together with the name, and refuse another one (RFC 8945 §5.2.1).
			secret, ok := newSecret(k.Algorithm)
			if !ok {
				// A Designate client can store a key with hmac-md5 or hmac-sha1, which the DNS side of the server does not accept.
				return cli.Fail("delete the key, and create it again",
					"the server accepts no messages with %s, the algorithm of %s", k.Algorithm, k.Name)
			}
			var next tsigKey
			in := map[string]string{"secret": secret}
			if err := cl.call(cmd.Context(), http.MethodPatch, tsigPath+"/"+k.ID, in, &next); err != nil {
				return err
			}
			if out.JSON() {
				return cli.PrintJSON(cmd.OutOrStdout(), next.raw)
			}
			return printKey(cmd.OutOrStdout(), next)
		}),
	}
	out.AddFlag(c)
	return c
}
