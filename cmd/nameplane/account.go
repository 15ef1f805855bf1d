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

// account is as much of a token, user or project as the command line speaks of.
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

// accounts lists all tokens, users or projects.
func (c *client) accounts(ctx context.Context, plural string) ([]account, error) {
	body := map[string][]account{}
	err := c.call(ctx, http.MethodGet, "/access/v1/"+plural, nil, &body)
	return body[plural], err
}

// findAccount finds one by id or name. Names of tokens need not be unique; revoked ones do not count.
func (c *client) findAccount(ctx context.Context, plural, idOrName string) (account, error) {
	all, err := c.accounts(ctx, plural)
	if err != nil {
		return account{}, err
	}
	var named []account
	for _, a := range all {
		if a.ID == idOrName {
			return a, nil
		}
		if a.Name == idOrName && a.RevokedAt == "" {
			named = append(named, a)
		}
	}
	one := strings.TrimSuffix(plural, "s")
	hint := "`nameplane " + one + " list` shows names and ids"
	switch len(named) {
	case 0:
		return account{}, cli.Fail(hint, "there is no %s %q", one, idOrName)
	case 1:
		return named[0], nil
	}
	return account{}, cli.Fail(hint+"; give the id", "%d %s are named %q", len(named), plural, idOrName)
}

// projectID is the id of a project given by id or name. An id needs no question, and so no right to list projects.
func (c *client) projectID(ctx context.Context, idOrName string) (string, error) {
	if len(idOrName) == 32 && strings.Trim(idOrName, "0123456789abcdef") == "" {
		return idOrName, nil
	}
	p, err := c.findAccount(ctx, "projects", idOrName)
	return p.ID, err
}

// listAccounts is the verb `list` of all three.
func listAccounts(cmd *cobra.Command, conn *connection, out cli.Format, plural string, head []string, row func(account) []string) error {
	cl, err := conn.open(cmd.Context())
	if err != nil {
		return err
	}
	l := cli.NewListing(cmd.OutOrStdout(), out, head...)
	err = cl.pages(cmd.Context(), "/access/v1/"+plural, plural, func(items []json.RawMessage) error {
		return l.Page(items, func(item json.RawMessage) ([][]string, error) {
			var a account
			err := json.Unmarshal(item, &a)
			return [][]string{row(a)}, err
		})
	})
	return l.End(err, "no "+plural)
}

// createAccount makes one, and returns it read and as it came.
func (c *client) createAccount(ctx context.Context, plural string, in any) (account, json.RawMessage, error) {
	one := strings.TrimSuffix(plural, "s")
	body := map[string]json.RawMessage{}
	if err := c.call(ctx, http.MethodPost, "/access/v1/"+plural, in, &body); err != nil {
		return account{}, nil, err
	}
	var a account
	err := json.Unmarshal(body[one], &a)
	return a, body[one], err
}

// deleteAccount finds one and deletes it.
func (c *client) deleteAccount(ctx context.Context, plural, idOrName string) (account, error) {
	a, err := c.findAccount(ctx, plural, idOrName)
	if err != nil {
		return a, err
	}
	return a, c.call(ctx, http.MethodDelete, "/access/v1/"+plural+"/"+url.PathEscape(a.ID), nil, nil)
}

// newDeleteCommand is the verb that ends a token, user or project; done is its past tense.
func newDeleteCommand(conn *connection, c *cobra.Command, plural, done string) *cobra.Command {
	c.Args = cli.Args(1, 1)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		cl, err := conn.open(cmd.Context())
		if err != nil {
			return err
		}
		a, err := cl.deleteAccount(cmd.Context(), plural, args[0])
		if err != nil {
			return err
		}
		return cli.Say(cmd, "%s %s %s (%s)\n", done, strings.TrimSuffix(plural, "s"), a.Name, a.ID)
	}
	return c
}
