package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

const tsigLong = `TSIG keys sign DNS messages. A program with a key can update records (RFC 2136), and a
server with a key can transfer zones. A key is for some zones, or for all. It can be
limited to names and types of records, for a program that needs to change only these;
such a key cannot transfer zones.

These commands need a token with the role admin.`

// newTSIGCommand has no --project: keys belong to the server, and one key can be for zones of several projects.
func newTSIGCommand() *cobra.Command {
	c := cli.NewGroup("tsig", "Manage TSIG keys for updates and transfers", tsigLong,
		`  nameplane tsig create update.example.org --zone example.org
  nameplane tsig create acme --zone example.org --name '_acme-challenge.*' --type TXT
  nameplane tsig list
  nameplane tsig rotate acme`)
	conn := &connection{}
	conn.addFlags(c)
	c.AddCommand(newTSIGCreate(conn), newTSIGList(conn), newTSIGShow(conn), newTSIGDelete(conn), newTSIGRotate(conn))
	return c
}

const tsigPath = "/v2/tsigkeys"

// tsigKey holds the fields of a key that the command line uses.
type tsigKey struct {
	ID         string   `json:"id"`
	Name       string   `json:"name"`
	Algorithm  string   `json:"algorithm"`
	Secret     string   `json:"secret"`
	Scope      string   `json:"scope"`
	ResourceID string   `json:"resource_id"`
	Zones      []string `json:"zones"`
	Names      []string `json:"names"`
	Types      []string `json:"types"`
	CreatedAt  string   `json:"created_at"`
	UpdatedAt  string   `json:"updated_at"`

	raw json.RawMessage // the reply as received, for -o json
}

// UnmarshalJSON decodes the fields and keeps a copy of the JSON text in raw.
func (k *tsigKey) UnmarshalJSON(b []byte) error {
	type plain tsigKey
	if err := json.Unmarshal(b, (*plain)(k)); err != nil {
		return err
	}
	k.raw = append(json.RawMessage(nil), b...)
	return nil
}

// findKey returns the key with a name or id. Names are domain names: their case and final dot do not matter.
func (c *client) findKey(ctx context.Context, arg string) (key tsigKey, err error) {
	found := false
	// The API has no search by name, and a server has few keys.
	err = c.pages(ctx, tsigPath+"?limit=1000", "tsigkeys", func(items []json.RawMessage) error {
		for _, item := range items {
			var k tsigKey
			if err := json.Unmarshal(item, &k); err != nil {
				return err
			}
			if k.ID == arg || strings.EqualFold(strings.TrimSuffix(k.Name, "."), strings.TrimSuffix(arg, ".")) {
				key, found = k, true
			}
		}
		return nil
	})
	if err == nil && !found {
		err = cli.Fail("`nameplane tsig list` shows the keys", "there is no TSIG key %q", arg)
	}
	return key, err
}

// zoneNames returns the names of the zones that a key is for. A zone that cannot be read is shown by its id.
func (c *client) zoneNames(ctx context.Context, k tsigKey) string {
	ids := k.Zones
	if k.Scope == "ZONE" {
		ids = []string{k.ResourceID}
	}
	// A key of the pool without a list of zones is for all of them.
	if len(ids) == 0 {
		return "all"
	}
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		var z zoneReply
		// The zone may have been deleted after the list was read. The id is still useful, so this is no error.
		if err := c.call(ctx, http.MethodGet, "/v2/zones/"+id, nil, &z); err != nil {
			z.Name = id
		}
		names = append(names, z.Name)
	}
	return strings.Join(names, " ")
}

// limitText returns a limit of a key for people.
func limitText(list []string) string {
	if len(list) == 0 {
		return "all"
	}
	return strings.Join(list, " ")
}

// tsigAlgorithms are the algorithms that the server accepts in DNS messages, with the size of their secrets.
// RFC 2104 §3 recommends the size of the hash.
var tsigAlgorithms = map[string]int{"hmac-sha256": 32, "hmac-sha384": 48, "hmac-sha512": 64}

// newSecret returns a new secret for an algorithm. It returns false for an algorithm that the server does not accept.
func newSecret(algorithm string) (string, bool) {
	size, ok := tsigAlgorithms[algorithm]
	b := make([]byte, size)
	// rand.Read never returns an error: it ends the program when the system has no random numbers.
	rand.Read(b)
	return base64.StdEncoding.EncodeToString(b), ok
}

// printKey prints a key as a clause of BIND's configuration, which nsupdate and dig read with -k.
func printKey(w io.Writer, k tsigKey) error {
	_, err := fmt.Fprintf(w, "key \"%s\" {\n\talgorithm %s;\n\tsecret \"%s\";\n};\n", k.Name, k.Algorithm, k.Secret)
	return err
}
