package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
)

// account holds the fields of a token, user or project that the command line uses.
type account struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	ProjectName string `json:"project_name"`
	Role        string `json:"role"`
	App         string `json:"app"`
	Description string `json:"description"`
	CreatedAt   string `json:"created_at"`
	ExpiresAt   string `json:"expires_at"`
	RevokedAt   string `json:"revoked_at"`
	LastUsedAt  string `json:"last_used_at"`
	Token       string `json:"token"`
}

// findAccount returns the token, user or project with an id or name. Names of tokens need not be unique; a revoked
// token is found only by its id.
func (c *client) findAccount(ctx context.Context, plural, idOrName string) (account, error) {
	body := map[string][]account{}
	if err := c.call(ctx, http.MethodGet, "/access/v1/"+plural, nil, &body); err != nil {
		return account{}, err
	}
	var named []account
	for _, a := range body[plural] {
		if a.ID == idOrName {
			return a, nil
		}
		// A revoked token is listed for 30 days. Its name is free again, so it must not hide the token that has it
		// now.
		if a.Name == idOrName && a.RevokedAt == "" {
			named = append(named, a)
		}
	}
	singular := strings.TrimSuffix(plural, "s")
	hint := "`nameplane " + singular + " list` shows names and ids"
	switch len(named) {
	case 0:
		return account{}, cli.Fail(hint, "there is no %s %q", singular, idOrName)
	case 1:
		return named[0], nil
	}
	return account{}, cli.Fail(hint+"; use the id", "%d %s are named %q", len(named), plural, idOrName)
}

// projectID returns the id of a project that is given by id or name. An id needs no request, so the caller needs no
// permission to list projects.
func (c *client) projectID(ctx context.Context, idOrName string) (string, error) {
	// Ids of projects are UUIDs without hyphens, as in Keystone.
	if len(idOrName) == 32 && strings.Trim(idOrName, "0123456789abcdef") == "" {
		return idOrName, nil
	}
	p, err := c.findAccount(ctx, "projects", idOrName)
	return p.ID, err
}

// newListCommand completes c, the command that lists all tokens, users or projects.
func newListCommand(conn *connection, c *cobra.Command, plural string, head []string,
	row func(account) []string) *cobra.Command {
	var out cli.Format
	c.Use, c.Args = "list", cli.Args(0, 0)
	c.RunE = conn.with(func(cmd *cobra.Command, cl *client, _ []string) error {
		return cl.list(cmd, out, "/access/v1/"+plural, plural, "no "+plural, head,
			func(item json.RawMessage) ([][]string, error) {
				var a account
				err := json.Unmarshal(item, &a)
				return [][]string{row(a)}, err
			})
	})
	out.AddFlag(c)
	return c
}

// createAccount creates a token, user or project. It returns the reply decoded and as received.
func (c *client) createAccount(ctx context.Context, plural string, in any) (account, json.RawMessage, error) {
	singular := strings.TrimSuffix(plural, "s")
	body := map[string]json.RawMessage{}
	if err := c.call(ctx, http.MethodPost, "/access/v1/"+plural, in, &body); err != nil {
		return account{}, nil, err
	}
	var a account
	err := json.Unmarshal(body[singular], &a)
	return a, body[singular], err
}

// newDeleteCommand completes c, the command that deletes or revokes a token, user or project. done is the past tense of
// the verb, for the message.
func newDeleteCommand(conn *connection, c *cobra.Command, plural, done string) *cobra.Command {
	c.Args = cli.Args(1, 1)
	c.RunE = conn.with(func(cmd *cobra.Command, cl *client, args []string) error {
		a, err := cl.findAccount(cmd.Context(), plural, args[0])
		if err != nil {
			return err
		}
		path := "/access/v1/" + plural + "/" + url.PathEscape(a.ID)
		if err := cl.call(cmd.Context(), http.MethodDelete, path, nil, nil); err != nil {
			return err
		}
		return cli.Say(cmd, "%s %s %s (%s)\n", done, strings.TrimSuffix(plural, "s"), a.Name, a.ID)
	})
	return c
}
