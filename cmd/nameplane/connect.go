package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nameplane/nameplane/internal/cli"
	"github.com/nameplane/nameplane/internal/config"
)

// defaultServer returns the address of a server with the default configuration.
func defaultServer() string { return "http://" + config.Default().HTTP.Listen }

// connection is where the server is and what to show it, from flags and environment.
type connection struct {
	server    string
	tokenFile string
	data      string
	caFile    string
	project   string
}

// addFlags adds the flags of a connection to a command and those below it. They are not on the root, because `serve`
// has no use for them.
func (c *connection) addFlags(cmd *cobra.Command) {
	c.addServerFlags(cmd)
	f := cmd.PersistentFlags()
	f.StringVar(&c.tokenFile, "token-file", "",
		"`FILE` that holds the token (default: $NAMEPLANE_TOKEN, then admin.token in the data folder)")
	f.StringVar(&c.data, "data", "", "data `DIR` of the server, for its admin.token (default $NAMEPLANE_DATA or ./data)")
}

// addServerFlags adds the flags that say where the server is, for commands that need no token.
func (c *connection) addServerFlags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.server, "server", "", "`URL` of the server (default $NAMEPLANE_SERVER or "+defaultServer()+")")
	f.StringVar(&c.caFile, "ca-file", "", "PEM `FILE` of certificates to trust for https, instead of the system's")
}

// addProjectFlag adds the flag to act for a project, for what projects own.
func (c *connection) addProjectFlag(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&c.project, "project", "", "act for the project with this `ID` or name (administrators only)")
}

// dial returns a client without a token. It sends nothing.
func (c *connection) dial() (*client, error) {
	base, err := c.baseURL()
	if err != nil {
		return nil, err
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	return &client{
		base: base,
		http: &http.Client{
			Transport: transport,
			// A redirect could carry the token to another host.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// open returns a client with a token. It sends nothing, unless the project was given by its name.
func (c *connection) open(ctx context.Context) (*client, error) {
	cl, err := c.dial()
	if err != nil {
		return nil, err
	}
	if cl.token, cl.tokenFrom, err = c.token(); err != nil {
		return nil, err
	}
	if c.project != "" {
		cl.project, err = cl.projectID(ctx, c.project)
	}
	return cl, err
}

// with returns the RunE of a command that talks to the server.
func (c *connection) with(run func(*cobra.Command, *client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		cl, err := c.open(cmd.Context())
		if err != nil {
			return err
		}
		return run(cmd, cl, args)
	}
}

func (c *connection) baseURL() (string, error) {
	text, from := c.server, "--server"
	if text == "" {
		text, from = os.Getenv("NAMEPLANE_SERVER"), "NAMEPLANE_SERVER"
	}
	if text == "" {
		return defaultServer(), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return "", &cli.Failure{Code: cli.ExitUsage, Text: fmt.Sprintf("%s is %q, which is not the address of a server", from, text),
			Hint: "it looks like " + defaultServer() + " or https://dns.example.org:8053"}
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return "", &cli.Failure{Code: cli.ExitUsage, Text: fmt.Sprintf("%s is %s: the token would cross the network readable for all", from, text),
			Hint: "use https://, with --ca-file when the certificate is your own"}
	}
	return strings.TrimRight(u.String(), "/"), nil
}

func isLoopback(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.IsLoopback()
	}
	return strings.EqualFold(host, "localhost") // RFC 6761 §6.3
}

// token finds the token, and says where for the case that the server does not like it.
func (c *connection) token() (token, from string, err error) {
	if c.tokenFile == "" {
		if t := strings.TrimSpace(os.Getenv("NAMEPLANE_TOKEN")); t != "" {
			return t, "NAMEPLANE_TOKEN", nil
		}
	}
	file := c.tokenFile
	if file == "" {
		file = filepath.Join(cmp.Or(c.data, os.Getenv("NAMEPLANE_DATA"), config.Default().Data), "admin.token")
	}
	b, err := os.ReadFile(file)
	t := strings.TrimSpace(string(b))
	switch {
	case errors.Is(err, fs.ErrNotExist) && c.tokenFile == "":
		return "", "", cli.Fail("give --token-file, set NAMEPLANE_TOKEN, or name the server's data folder with --data",
			"no token: NAMEPLANE_TOKEN is not set and there is no file %s", file)
	case err != nil:
		return "", "", cli.Fail("whoever may manage the server may read this file; ask for a token of your own", "cannot read the token: %s", err)
	case t == "" || strings.ContainsAny(t, " \t\r\n") || len(t) > 4096:
		return "", "", cli.Fail("the file holds a token (np_...) and nothing else", "%s does not hold a token", file)
	}
	return t, file, nil
}

func (c *connection) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute, // an import waits for its turn behind others
		ForceAttemptHTTP2:     true,
	}
	if c.caFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(c.caFile)
	if err != nil {
		return nil, cli.Fail("", "cannot read --ca-file: %s", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, cli.Fail("it begins with -----BEGIN CERTIFICATE-----", "--ca-file %s holds no certificate in PEM form", c.caFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}
